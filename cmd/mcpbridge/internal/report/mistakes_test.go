package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// mistakesIn returns what programs read of a configuration that can't be used.
func mistakesIn(t *testing.T, path string, environ ...string) string {
	t.Helper()
	_, warnings, err := config.Load(config.Options{Path: path, Environ: environ})
	if err == nil {
		t.Fatal("the configuration can be used")
	}
	var out bytes.Buffer
	if err := PrintMistakes(&out, path, err, warnings); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func fileWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Programs read mistakes as JSON: where each is, what is wrong, and what to do next.
func TestPrintMistakes(t *testing.T) {
	path := fileWith(t, "servers:\n  a: {command: x, url: http://h}\n  b:\n    command: y\n    autoApprove: [z]\n    argz: [\"a; b\"]\n    timeouts: {connect: \"a; b\"}\n")
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
	if got := mistakesIn(t, path, "MCPBRIDGE_DRAIN=5"); got != strings.ReplaceAll(want, "PATH", path) {
		t.Errorf("PrintMistakes prints\n%s\nwant\n%s", got, want)
	}
	got := mistakesIn(t, path+".none")
	if want := "{\n  \"mistakes\": [\n    {\n      \"file\": \"" + path + ".none\",\n      \"what\": \"reading the configuration: "; !strings.HasPrefix(got, want) {
		t.Errorf("of a missing file it prints\n%s\nwant it to begin with\n%s", got, want)
	}
	broken := fileWith(t, "{\n  \"servers\": {\n    \"a\": {\"command\" \"x\"}}\n}\n")
	if got := mistakesIn(t, broken); !strings.Contains(got, "\"line\": 3,\n      \"column\": 21,\n") {
		t.Errorf("of broken JSON it prints\n%s", got)
	}
}

// A configuration that can be used has warnings in its summary, as mistakes have them.
func TestSummaryHasWarnings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	s, _ := summaryOf(t, path, "{\"listen\": \"127.0.0.1:1\", \"servers\":\n{\"a\": {\"command\": \"x\", \"autoApprove\": []}}}")
	if text, want := asJSON(t, s), "\"warnings\": [\n    {\n      \"file\": \""+path+"\",\n      \"line\": 2,\n      \"column\": 24,\n"; !strings.Contains(text, want) {
		t.Errorf("the summary is %s, want it to have\n%s", text, want)
	}
}
