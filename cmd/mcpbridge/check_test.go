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

// Programs read mistakes as JSON, and people the same beside it; a warning leaves the code 0.
func TestCheckReportsMistakesAsJSON(t *testing.T) {
	path := configFile(t, "servers: {a: {command: x, argz: []}}\n")
	got := runCommand(t.Context(), []string{"MCPBRIDGE_DRAIN=5"}, "check", path, "--json")
	if want := "{\n  \"mistakes\": [\n    {\n      \"where\": \"MCPBRIDGE_DRAIN\",\n"; got.code != exitUsage || !strings.HasPrefix(got.out, want) || !strings.Contains(got.err, "unknown key; did you mean args?\n") {
		t.Errorf("check --json = %d\n%s%s\nwant it to begin with\n%s", got.code, got.out, got.err, want)
	}
	fine := configFile(t, "servers: {a: {command: x, autoApprove: []}}\n")
	if got = runCommand(t.Context(), nil, "check", fine, "--json"); got.code != 0 || !strings.Contains(got.out, "\"warnings\": [\n    {\n      \"file\": \""+fine+"\",\n") {
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
