package quirks

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// A quirk is tolerated unless it is off, and what was met is counted and remembered by client.
func TestRecorder(t *testing.T) {
	var log bytes.Buffer
	counted := make(map[string]int)
	r := New(Options{
		Server: "docs", Off: func(name string) bool { return name == "x" },
		Count:  func(server, quirk string) { counted[server+" "+quirk]++ },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if !r.Tolerates(HeaderRevision) {
		t.Error("a quirk is not tolerated that is not off")
	}
	for range 3 {
		r.Met(HeaderRevision, "a/1")
	}
	r.Met(HeaderRevision, "a/2")
	r.Met(HeaderRevision, "")
	want := fmt.Sprint([]Meeting{{HeaderRevision, "a/1", 3}, {HeaderRevision, "a/2", 1}, {HeaderRevision, "unnamed", 1}})
	if got := fmt.Sprint(r.Meetings()); got != want {
		t.Errorf("met %s, want %s", got, want)
	}
	if counted["docs header-revision"] != 5 {
		t.Errorf("counted %v, want 5", counted)
	}
	for _, line := range []string{"client=a/1", "client=a/2", "client=unnamed"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("the log has %q %d times, want it once:\n%s", line, strings.Count(log.String(), line), &log)
		}
	}
	for _, part := range []string{"level=INFO", "upstream=docs", "quirk=header-revision", "rule=Q-01"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, &log)
		}
	}
	if off := New(Options{Off: func(name string) bool { return name == "header-revision" }}); off.Tolerates(HeaderRevision) {
		t.Error("a quirk is tolerated that is off")
	}
}

// Clients name themselves: those beyond a bound are one.
func TestBoundedClients(t *testing.T) {
	var log bytes.Buffer
	r := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var all sync.WaitGroup
	for i := range MaxClients + 50 {
		all.Go(func() { r.Met(HeaderRevision, fmt.Sprint("c", i)) })
	}
	all.Wait()
	met := r.Meetings()
	if len(met) != MaxClients+1 || strings.Count(log.String(), "\n") != MaxClients+1 {
		t.Errorf("%d meetings and %d lines, want %d of each", len(met), strings.Count(log.String(), "\n"), MaxClients+1)
	}
	for _, m := range met {
		if m.Client == Other && m.Count != 50 {
			t.Errorf("met %+v, want 50 of all others", m)
		}
	}
}

// Without a Recorder everything is tolerated.
func TestNoRecorder(t *testing.T) {
	var r *Recorder
	r.Met(HeaderRevision, "a")
	if !r.Tolerates(HeaderRevision) || r.Meetings() != nil {
		t.Error("a nil Recorder refuses or remembers")
	}
}
