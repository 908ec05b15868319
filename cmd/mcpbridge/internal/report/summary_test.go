package report

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// summaryOf returns the summary of a configuration, and what people read of it.
func summaryOf(t *testing.T, path, text string) (Summary, string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSummary(c, func(_ *config.Config, s *config.Server) []string { return slices.Sorted(maps.Keys(s.Env)) })
	s.Warnings = Problems(warnings)
	var out bytes.Buffer
	table := output.NewTable(&out, false)
	s.Print(table, path)
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return s, out.String()
}

// How long a server may take depends on its kind, and whether it is remembered.
func TestSummaryShowsDefaultsOfKinds(t *testing.T) {
	s, text := summaryOf(t, filepath.Join(t.TempDir(), "c.yaml"), "servers: {a: {command: x}, b: {url: 'http://h'}, c: {command: x, remember: false, timeouts: {connect: 1500ms}}}")
	for _, want := range []string{" x auto principal 60s ", " http://h auto principal 10s ", " x auto principal 1.5s "} {
		if !strings.Contains(strings.Join(strings.Fields(text), " ")+" ", want) {
			t.Errorf("the summary is %s, want %q in it", text, want)
		}
	}
	for i, want := range []Served{{Connect: 60, Remember: true}, {Connect: 10}, {Connect: 1.5}} {
		if is := s.Servers[i]; is.Connect != want.Connect || is.Remember != want.Remember {
			t.Errorf("%s: connect %v, remember %v, want %v, %v", is.Name, is.Connect, is.Remember, want.Connect, want.Remember)
		}
	}
}

// A summary names the files that were included.
func TestSummaryNamesIncluded(t *testing.T) {
	dir := t.TempDir()
	included := filepath.Join(dir, "b.yml")
	if err := os.WriteFile(included, []byte("servers: {b: {builtin: notebook}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, text := summaryOf(t, filepath.Join(dir, "c.yaml"), "include: '*.yml'\nservers: {a: {builtin: notebook}}\n")
	if want := "\ninclude  " + included + "\n\nSERVER"; !strings.Contains(text, want) || strings.Join(s.Include, " ") != included {
		t.Errorf("the summary is %s, include %q, want %q in it", text, s.Include, want)
	}
}

// A summary says how clients prove who they are, and the URL that access tokens have to be for;
// never a token.
func TestSummaryShowsWhoIsServed(t *testing.T) {
	_, text := summaryOf(t, filepath.Join(t.TempDir(), "c.yaml"), `public_url: https://mcp.example.com/
auth: {tokens: [{name: alice, token: s3cret-0123456789}, {name: bob, token: s3cret-0123456780}, {name: alice, token: s3cret-0123456781}]}
servers:
  a: {builtin: notebook}
  b: {builtin: notebook, auth: {jwt: {issuer: "https://id.example.com"}}}
  c: {builtin: notebook, auth: none}
groups:
  team: {servers: [a]}
`)
	const want = `
SERVER  CLIENTS PROVE WHO THEY ARE BY
a       tokens of alice, bob
b       access tokens of https://id.example.com for https://mcp.example.com/mcp/b
team    tokens of alice, bob
`
	if !strings.HasSuffix(text, want) || strings.Contains(text, "s3cret") {
		t.Errorf("the summary is %s, want it to end with %s", text, want)
	}
}

// Clients may have a choice: of each way the summary says whose word is taken.
func TestSummaryShowsCertificates(t *testing.T) {
	dir := t.TempDir()
	_, _, ca := bridgetest.NewAuthority(t, "clients").Files(dir, bridgetest.Leaf{})
	s, _ := summaryOf(t, filepath.Join(dir, "c.yaml"), `tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem, client_auth: optional}
auth: {mtls: {principal: san}, tokens: [{name: alice, token: s3cret-0123456789}]}
servers: {a: {builtin: notebook}}
`)
	if got, want := s.Servers[0], "certificates of "+ca+"; tokens of alice"; got.Clients != want || got.Endpoint != "https://127.0.0.1:2526/mcp/a" {
		t.Errorf("clients of %s prove who they are by %q, want %q", got.Endpoint, got.Clients, want)
	}
}

// A summary shows how replicas would find each other, and no secret of theirs.
func TestSummaryShowsReplicas(t *testing.T) {
	s, text := summaryOf(t, filepath.Join(t.TempDir(), "c.yaml"), `replicas:
  engine: tls://peers:s3cret@nats-0:4222,peers:s3cret@nats-1
  keys: [VbY7q+Ws0ZtR2gKd8fq2mz0x, s3cret+Ws0ZtR2gKd8fq2mz0x]
  peer: 127.0.0.1:2528
servers: {notebook: {builtin: notebook}}
`)
	want := `
REPLICAS BY                    PREFIX     PEER            ADVERTISED AS   TLS  KEYS
tls://nats-0:4222,nats-1:4222  mcpbridge  127.0.0.1:2528  127.0.0.1:2528  no   2
`
	if !strings.Contains(text, want) || strings.Contains(text, "s3cret") || len(s.Warnings) > 0 {
		t.Errorf("the summary is %s, with the warnings %+v, want it to have%s", text, s.Warnings, want)
	}
	text = asJSON(t, s)
	want = `"replicas": {
    "engine": "tls://nats-0:4222,nats-1:4222",
    "prefix": "mcpbridge",
    "peer": "127.0.0.1:2528",
    "advertise": "127.0.0.1:2528",
    "tls": false,
    "keys": 2
  }`
	if !strings.Contains(text, want) || strings.Contains(text, "s3cret") || strings.Contains(text, `"connect":`) {
		t.Errorf("the summary is %s, want it to have\n%s", text, want)
	}
}

// asJSON returns what programs read.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	if err := output.JSON(&out, v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A summary says what is hidden and renamed, of servers where that is so.
func TestSummaryShowsWhatClientsSee(t *testing.T) {
	_, text := summaryOf(t, filepath.Join(t.TempDir(), "c.yaml"), `servers:
  a:
    builtin: notebook
    tools: {deny: [enable_search], rename: {edit_note: write}, describe: {write: "Writes a note."}}
    prompts: {rename: {summarize: sum_up}}
    resources: {deny: ["note://journal"]}
  all: {builtin: notebook}
  some:
    builtin: notebook
    tools: {allow: [edit_note, "enable_*"], rename: {enable_search: b, edit_note: a}}
`)
	const want = `
SERVER  CLIENTS SEE OF IT
a       all tools without enable_search; edit_note as write; other descriptions of write
a       all prompts; summarize as sum_up
a       all resources without note://journal
some    tools edit_note, enable_*; edit_note as a; enable_search as b
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("the summary is %s, want it to end with %s", text, want)
	}
}

// A summary says which groups would be served, and by which names their servers go there.
func TestSummaryShowsGroups(t *testing.T) {
	s, text := summaryOf(t, filepath.Join(t.TempDir(), "c.yaml"), `listen: 0.0.0.0:2526
allow_anonymous: true
servers:
  a: {builtin: notebook}
  b: {builtin: modern-notebook, prefix: bb}
  off: {command: x, disabled: true}
groups:
  team: {servers: [a, b]}
  bare: {servers: [b, a], prefix: never, prefer: {summarize: a}}
`)
	for _, want := range []string{
		"\nGROUP  ENDPOINT                        SERVERS\nbare   http://127.0.0.1:2526/mcp/bare  b, a\nteam   http://127.0.0.1:2526/mcp/team  a as a__…, b as bb__…\n",
		"\noff     disabled                     x ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary is %s, want it to have%s", text, want)
		}
	}
	const member = `"servers": [
      {
        "name": "b"
      },
      {
        "name": "a"
      }
    ]`
	if all := s.All(); len(all) != 5 || !strings.Contains(asJSON(t, all), member) {
		t.Errorf("all are %s, want servers and groups, and %s", asJSON(t, all), member)
	}
}
