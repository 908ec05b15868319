package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
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

// How long a server may take depends on its kind, and whether it is remembered.
func TestCheckShowsDefaultsOfKinds(t *testing.T) {
	path := configFile(t, "servers: {a: {command: x}, b: {url: 'http://h'}, c: {command: x, remember: false, timeouts: {connect: 1500ms}}}")
	got := runCommand(t.Context(), nil, "check", "-c", path)
	for _, want := range []string{" x auto principal 60s ", " http://h auto principal 10s ", " x auto principal 1.5s "} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " ")+" ", want) {
			t.Errorf("check = %s, want %q in it", got.out, want)
		}
	}
	got = runCommand(t.Context(), nil, "check", "-c", path, "--json")
	var s report.Summary
	if err := json.Unmarshal([]byte(got.out), &s); err != nil {
		t.Fatal(err)
	}
	for i, want := range []report.Served{{Connect: 60, Remember: true}, {Connect: 10}, {Connect: 1.5}} {
		if is := s.Servers[i]; is.Connect != want.Connect || is.Remember != want.Remember {
			t.Errorf("%s: connect %v, remember %v, want %v, %v", is.Name, is.Connect, is.Remember, want.Connect, want.Remember)
		}
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

// check names the files that were included.
func TestCheckNamesIncluded(t *testing.T) {
	path := configFile(t, "include: '*.yml'\nservers: {a: {builtin: notebook}}\n")
	included := filepath.Join(filepath.Dir(path), "b.yml")
	if err := os.WriteFile(included, []byte("servers: {b: {builtin: notebook}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runCommand(t.Context(), nil, "check", path)
	if want := "\ninclude  " + included + "\n\nSERVER"; got.code != 0 || !strings.Contains(got.out, want) {
		t.Errorf("check = %d, %s, want %q in it", got.code, got.out, want)
	}
	got = runCommand(t.Context(), nil, "check", path, "--json")
	var s report.Summary
	if err := json.Unmarshal([]byte(got.out), &s); err != nil || strings.Join(s.Include, " ") != included {
		t.Errorf("check --json = %s (%v), want include of %s", got.out, err, included)
	}
}
