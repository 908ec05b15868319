package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const exampleFile = "../../config.example.yaml"

func TestCheckExample(t *testing.T) {
	got := runCommand(t.Context(), nil, "check", "-c", exampleFile)
	want := `../../config.example.yaml can be used.

listen  127.0.0.1:2526
admin   127.0.0.1:2527

SERVER    ENDPOINT                            REACHED BY        ERA   ISOLATION  CONNECT
notebook  http://127.0.0.1:2526/mcp/notebook  builtin notebook  auto  principal  10s
`
	if got.code != 0 || got.err != "" || got.out != want {
		t.Errorf("check = %d, %q,\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
}

// What check prints may be pasted into a bug report.
func TestCheckShowsNoSecret(t *testing.T) {
	path := configFile(t, `servers:
  docs:
    url: https://docs.example.com/mcp?key=s3cret
    headers: {Authorization: "Bearer ${DOCS_TOKEN}"}
  files:
    command: npx
    args: [server, --token, s3cret, "${DOCS_TOKEN}"]
    env: {API_KEY: s3cret}
    autoApprove: [x]
`)
	for _, args := range [][]string{{"check", "-c", path}, {"check", "-c", path, "--json"}} {
		got := runCommand(t.Context(), []string{"DOCS_TOKEN=s3cret"}, args...)
		if all := got.out + got.err; got.code != 0 || strings.Contains(all, "s3cret") || !strings.Contains(all, "${DOCS_TOKEN}") {
			t.Errorf("%q = %d, %s, want no secret in it", args, got.code, all)
		}
		if want := "mcpbridge: warning: " + path + ":9: servers.files.autoApprove: belongs to desktop clients and has no effect here\n"; got.err != want {
			t.Errorf("%q warns %q, want %q", args, got.err, want)
		}
	}
}

func TestCheckReportsMistakes(t *testing.T) {
	path := configFile(t, "drain: 5\nservers: {a: {command: x, url: http://h}}\n")
	got := runCommand(t.Context(), nil, "check", "-c", path)
	want := "mcpbridge: " + path + `:1: drain: "5" has no unit; write one such as 300ms, 10s or 5m
mcpbridge: ` + path + `:2: servers.a: command and url are both set; remove one of them
`
	if got.code != exitUsage || got.err != want {
		t.Errorf("check = %d,\n%s\nwant %d,\n%s", got.code, got.err, exitUsage, want)
	}
	if got := runCommand(t.Context(), nil, "check", "-c", path+".none"); got.code != exitUsage || !strings.Contains(got.err, "no such file") {
		t.Errorf("check of a missing file = %d, %q", got.code, got.err)
	}
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// check shows how replicas would find each other, and no secret of theirs.
func TestCheckShowsReplicas(t *testing.T) {
	path := configFile(t, `replicas:
  engine: tls://peers:s3cret@nats-0:4222,peers:s3cret@nats-1
  keys: [VbY7q+Ws0ZtR2gKd8fq2mz0x, s3cret+Ws0ZtR2gKd8fq2mz0x]
  peer: 127.0.0.1:2528
servers: {notebook: {builtin: notebook}}
`)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t.Context(), nil, "check", path)
	want := `
REPLICAS BY                    PREFIX     PEER            ADVERTISED AS   TLS  KEYS
tls://nats-0:4222,nats-1:4222  mcpbridge  127.0.0.1:2528  127.0.0.1:2528  no   2
`
	if got.code != 0 || got.err != "" || !strings.Contains(got.out, want) || strings.Contains(got.out, "s3cret") {
		t.Errorf("check = %+v, want it to have%s", got, want)
	}
	got = runCommand(t.Context(), nil, "check", path, "--json")
	want = `"replicas": {
    "engine": "tls://nats-0:4222,nats-1:4222",
    "prefix": "mcpbridge",
    "peer": "127.0.0.1:2528",
    "advertise": "127.0.0.1:2528",
    "tls": false,
    "keys": 2
  }`
	if got.code != 0 || !strings.Contains(got.out, want) || strings.Contains(got.out, "s3cret") || strings.Contains(got.out, `"connect":`) {
		t.Errorf("check --json = %+v, want it to have\n%s", got, want)
	}
}
