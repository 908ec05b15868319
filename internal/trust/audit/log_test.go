package audit

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// losses counts lost lines.
type losses struct {
	mcp.NoMetrics
	lost    atomic.Int64
	failing atomic.Bool
}

func (l *losses) AuditLost(n int)       { l.lost.Add(int64(n)) }
func (l *losses) AuditFailing(now bool) { l.failing.Store(now) }

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
		Address: "10.0.0.7:4711", Request: "AAAAAA-1", Trace: "4bf92f3577b34da6a3ce929d0e0e4736", Digest: "sha256:00", Changed: []string{"auth", "servers.a.url"}, Times: 3,
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
		"address": "10.0.0.7:4711", "request": "AAAAAA-1", "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "digest": "sha256:00", "times": 3.0, "changed": []any{"auth", "servers.a.url"},
	} {
		if got := lines[0][name]; !reflect.DeepEqual(got, want) {
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
		for end := time.Now().Add(bridgetest.Patience); ; time.Sleep(10 * time.Millisecond) {
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
	logs, counts := &bridgetest.Log{}, &losses{}
	l := open(t, Options{Path: path, Logger: slog.New(slog.NewTextHandler(logs, nil)), Metrics: counts})
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	l.Write(&Record{Name: "x"})
	if err := l.Close(); err == nil {
		t.Error("Close() = nil, want why lines were not written")
	}
	if got := logs.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "lines=1") || counts.lost.Load() != 1 {
		t.Errorf("log = %s, %d counted, want an error", got, counts.lost.Load())
	}
}

// A disk that is slow must not make the process grow.
func TestPendingLinesAreBounded(t *testing.T) {
	for _, required := range []bool{false, true} {
		counts := &losses{}
		l := &Log{opts: Options{MaxPending: 1000, Metrics: counts, Required: required, Logger: slog.New(slog.DiscardHandler)}}
		refusedAt := 0
		for range 100 {
			if l.Write(&Record{Server: "s", Name: strings.Repeat("x", 100)}); l.Refuses() && refusedAt == 0 {
				refusedAt = len(l.pending)
			}
		}
		most := 2000
		if required {
			most = 3000
		}
		if len(l.pending) > most || l.lost == 0 || !counts.failing.Load() {
			t.Errorf("required %v: %d bytes are pending, %d lines lost, failing %v", required, len(l.pending), l.lost, counts.failing.Load())
		}
		if required != (refusedAt > 0) || refusedAt > 2000 {
			t.Errorf("required %v: requests were refused from %d bytes on; those in flight have room then", required, refusedAt)
		}
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
