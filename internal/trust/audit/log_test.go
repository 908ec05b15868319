package audit

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// hits counts the limits that were hit.
type hits struct {
	mcp.NoMetrics
	n int
}

func (h *hits) Limit(string, string) { h.n++ }

func open(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func read(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for line := range strings.Lines(string(data)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		lines = append(lines, m)
	}
	return lines
}

func TestLogLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, Options{Path: path})
	l.Write(&Record{
		Time: time.UnixMilli(1e12), Principal: "ad\"a\n", Client: "c/1", Session: "s", Server: "files", Era: "modern", Method: "tools/call",
		Kind: "tool", Name: "rm", Decision: "deny", Rule: 2, Reason: "no", Outcome: "refused", Took: 1234567 * time.Nanosecond,
	})
	l.Write(&Record{Time: time.UnixMilli(1e12), Name: strings.Repeat("ä", 1000)})
	if err := l.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	lines := read(t, path)
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	for name, want := range map[string]any{
		"time": "2001-09-09T01:46:40.000Z", "principal": "ad\"a\n", "client": "c/1", "session": "s", "server": "files", "era": "modern", "method": "tools/call",
		"kind": "tool", "name": "rm", "decision": "deny", "rule": 2.0, "reason": "no", "outcome": "refused", "ms": 1.234,
	} {
		if got := lines[0][name]; got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got := lines[1]["name"].(string); len(got) > maxText+4 || lines[1]["principal"] != nil {
		t.Errorf("the second line has %v, want a short name alone", lines[1])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Stat = %v, %v, want mode 0600", info, err)
	}
}

// The query of a URI may be arguments, and its user information a credential.
func TestURIsAreCut(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///a/b":                     "file:///a/b",
		"https://h/p?token=s3cret":        "https://h/p?…",
		"https://h/p#s3cret":              "https://h/p#…",
		"https://ada:s3cret@h/p":          "https://…@h/p",
		"https://ada:s3cret@h/p?x=s3cret": "https://…@h/p?…",
		"note:a":                          "note:a",
	} {
		if got := withoutQuery("resource", uri); got != want {
			t.Errorf("%s is recorded as %s, want %s", uri, got, want)
		}
	}
	if got := withoutQuery("tool", "a?b"); got != "a?b" {
		t.Errorf("tool a?b is recorded as %s", got)
	}
}

// A file that was moved away is made anew, and lines go on there.
func TestLogIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, Options{Path: path})
	wait := func(name string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if data, _ := os.ReadFile(path); strings.Contains(string(data), name) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s was not written", name)
			}
		}
	}
	l.Write(&Record{Name: "first"})
	wait("first")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Write(&Record{Name: "second"})
	wait("second")
	if data, _ := os.ReadFile(path); strings.Contains(string(data), "first") {
		t.Error("the new file has what the old one had")
	}
}

// Lines that are lost are told of loudly.
func TestLostLinesAreTold(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gone", "audit.log")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	logs, counts := &bridgetest.Log{}, &hits{}
	l := open(t, Options{Path: path, Logger: slog.New(slog.NewTextHandler(logs, nil)), Metrics: counts})
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	l.Write(&Record{Name: "x"})
	if err := l.Close(); err == nil {
		t.Error("Close() = nil, want why lines were not written")
	}
	if got := logs.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "lines=1") || counts.n == 0 {
		t.Errorf("log = %s, %d counted, want an error", got, counts.n)
	}
}

// A disk that is slow must not make the process grow.
func TestPendingLinesAreBounded(t *testing.T) {
	counts := &hits{}
	l := &Log{opts: Options{MaxPending: 1000, Metrics: counts}}
	for range 100 {
		l.Write(&Record{Server: "s", Name: strings.Repeat("x", 100)})
	}
	if len(l.pending) > 2000 || counts.n == 0 || l.lost != counts.n {
		t.Errorf("%d bytes are pending, %d lines lost, %d counted", len(l.pending), l.lost, counts.n)
	}
}

func TestOpenFails(t *testing.T) {
	if _, err := Open(Options{Path: filepath.Join(t.TempDir(), "no", "file")}); err == nil || !strings.HasPrefix(err.Error(), "opening the audit log: ") {
		t.Errorf("Open = %v", err)
	}
	var none *Log
	none.Write(&Record{})
	if err := none.Close(); err != nil {
		t.Errorf("Close of none = %v", err)
	}
}
