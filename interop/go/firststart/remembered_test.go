package firststart

import (
	"slices"
	"testing"
	"time"
)

// TestM2L05Remembered sees that wrap answers server/discover out of what it remembers
// while the command still sleeps, again and again, and that the command serves what
// is asked then.
//
// Within what time is a figure of an idle machine: it is held against the bound if
// FIRSTSTART says so. Elsewhere it shows that nobody waited for the command.
func TestM2L05Remembered(t *testing.T) {
	const runs, sleep = 20, 6
	bound := 2 * time.Second
	if all() {
		bound = 50 * time.Millisecond
	}
	at := slowMemory(t, sleep)
	if took := discover(t, at, true); took < sleep*time.Second {
		t.Fatalf("with nothing remembered, server/discover was answered after %v, before the command could", took)
	}
	var times []time.Duration
	for range runs {
		times = append(times, discover(t, at, false))
	}
	slices.Sort(times)
	t.Logf("server/discover of a remembered server after mcpbridge's start, %d runs: median %v, least %v, most %v",
		runs, times[runs/2], times[0], times[runs-1])
	if got := times[runs/2]; got > bound {
		t.Errorf("server/discover of a remembered server was answered %v after mcpbridge's start (median of %d), want at most %v", got, runs, bound)
	}
	if n := at.started(); n > runs+1 {
		t.Errorf("%d runs started the command %d times, want once each at most", runs+1, n)
	}
	discover(t, at, true)
}

// discover starts mcpbridge wrap, asks what the server is, and ends it; with use, the
// server's tools are asked for too. It returns when the answer came after the start.
func discover(t *testing.T, at *stand, use bool) time.Duration {
	t.Helper()
	p := openPipe(t, at.wrap().Argv...)
	a, _, err := p.ask(asksDiscover, 2*time.Minute)
	took := time.Since(p.began)
	switch {
	case err != nil:
		t.Errorf("server/discover: %v; mcpbridge wrote:\n%s", err, p.log.String())
	case a.Error != nil || a.serverInfo() != "memory-server":
		t.Errorf("server/discover: %+v, want the server's description; mcpbridge wrote:\n%s", a, p.log.String())
	}
	if use && err == nil {
		if a, _, err := p.ask(asksTools, 2*time.Minute); err != nil || len(a.Result.Tools) == 0 {
			t.Errorf("tools/list: %+v, %v; mcpbridge wrote:\n%s", a, err, p.log.String())
		}
	}
	if took, err := p.end(); err != nil || took > 4*time.Second {
		t.Errorf("mcpbridge ended %v after its input: %v; it wrote:\n%s", took, err, p.log.String())
	}
	if t.Failed() {
		t.FailNow()
	}
	return took
}
