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

// Programs read mistakes as JSON: where each is, what is wrong, and what to do next.
func TestCheckReportsMistakesAsJSON(t *testing.T) {
	environ := []string{"MCPBRIDGE_DRAIN=5"}
	path := configFile(t, "servers:\n  a: {command: x, url: http://h}\n  b:\n    command: y\n    autoApprove: [z]\n    argz: [\"a; b\"]\n    timeouts: {connect: \"a; b\"}\n")
	got := runCommand(t.Context(), environ, "check", path, "--json")
	want := `{
  "mistakes": [
    {
      "where": "MCPBRIDGE_DRAIN",
      "key": "drain",
      "what": "the value has no unit",
      "next": "write one such as 300ms, 10s or 5m"
    },
    {
      "file": "PATH",
      "line": 2,
      "column": 3,
      "key": "servers.a",
      "what": "command and url are both set",
      "next": "remove one of them"
    },
    {
      "file": "PATH",
      "line": 6,
      "column": 5,
      "key": "servers.b.argz",
      "what": "unknown key",
      "next": "did you mean args?"
    },
    {
      "file": "PATH",
      "line": 7,
      "column": 25,
      "key": "servers.b.timeouts.connect",
      "what": "\"a; b\" is not a duration",
      "next": "write one such as 300ms, 10s or 5m"
    }
  ],
  "warnings": [
    {
      "file": "PATH",
      "line": 5,
      "column": 5,
      "key": "servers.b.autoApprove",
      "what": "belongs to desktop clients and has no effect here"
    }
  ]
}
`
	if want = strings.ReplaceAll(want, "PATH", path); got.code != exitUsage || got.out != want || !strings.Contains(got.err, "unknown key; did you mean args?\n") {
		t.Errorf("check --json = %d\n%s%s\nwant\n%s", got.code, got.out, got.err, want)
	}
	got = runCommand(t.Context(), nil, "check", path+".none", "--json")
	if want := "{\n  \"mistakes\": [\n    {\n      \"file\": \"" + path + ".none\",\n      \"what\": \"reading the configuration: "; got.code != exitUsage || !strings.HasPrefix(got.out, want) {
		t.Errorf("check --json of a missing file = %d %s", got.code, got.out)
	}
	broken := configFile(t, "{\n  \"servers\": {\n    \"a\": {\"command\" \"x\"}}\n}\n")
	if got = runCommand(t.Context(), nil, "check", broken, "--json"); got.code != exitUsage || !strings.Contains(got.out, "\"line\": 3,\n      \"column\": 21,\n") {
		t.Errorf("check --json of broken JSON = %d %s", got.code, got.out)
	}
	fine := configFile(t, "{\"listen\": \"127.0.0.1:1\", \"servers\":\n{\"a\": {\"command\": \"x\", \"autoApprove\": []}}}")
	if got = runCommand(t.Context(), nil, "check", fine, "--json"); got.code != 0 || !strings.Contains(got.out, "\"warnings\": [\n    {\n      \"file\": \""+fine+"\",\n      \"line\": 2,\n      \"column\": 24,\n") {
		t.Errorf("check --json with a warning = %d %s", got.code, got.out)
	}
}

// Who looks for the version finds it where other programs have it.
func TestVersionFlags(t *testing.T) {
	want := runCommand(t.Context(), nil, "version")
	for _, flag := range []string{"--version", "-v"} {
		if got := runCommand(t.Context(), nil, flag); got != want || got.code != 0 || !strings.HasPrefix(got.out, "mcpbridge ") {
			t.Errorf("%s = %+v, want %+v", flag, got, want)
		}
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
