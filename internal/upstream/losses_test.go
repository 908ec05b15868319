package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func lossy(t *testing.T) (*Options, *bridgetest.Log, *backtest.Metrics) {
	log, counts := &bridgetest.Log{}, &backtest.Metrics{}
	o := &Options{Name: "docs", Logger: log.Logger(), Metrics: counts}
	o.Fill(spec.Legacy)
	return o, log, counts
}

func clientOf(name string) *mcp.Request {
	return &mcp.Request{Method: "tools/call", ClientInfo: json.RawMessage(fmt.Sprintf(`{"name":%q,"version":"1"}`, name)), Share: mcp.Share{Principal: "ada"}}
}

// Each client that had state in a session hears of its loss once, in a session that was
// opened afterwards.
func TestU05LossesAreToldOnce(t *testing.T) {
	o, log, counts := lossy(t)
	first, beside := o.Hold(LostExit, false), o.Hold(LostExit, false)
	one, two, other := clientOf("one"), clientOf("two"), clientOf("other")
	first.Note(one)
	first.Note(two)
	beside.Note(other)
	first.Ended()()
	first.Lose(LostIdle)() // it was lost before
	if why := beside.Owed(one); why != "" {
		t.Errorf("a session that was open before tells %q, want nothing", why)
	}
	next := o.Hold(LostExit, false)
	for _, tt := range []struct {
		req  *mcp.Request
		want string
	}{{one, "exit"}, {one, ""}, {other, ""}, {two, "exit"}, {two, ""}} {
		if why := next.Owed(tt.req); why != tt.want {
			t.Errorf("Owed(%s) = %q, want %q", tt.req.ClientInfo, why, tt.want)
		}
	}
	if n := counts.Count("lost exit"); n != 2 {
		t.Errorf("%d clients were counted, want 2", n)
	}
	got := log.String()
	if !strings.Contains(got, "level=WARN") || !strings.Contains(got, "upstream=docs") || !strings.Contains(got, "cause=exit") || !strings.Contains(got, "one/1 (ada)") || strings.Count(got, "\n") != 1 {
		t.Errorf("the log has %s, want one line with the server, the clients and the cause", got)
	}
}

// Nothing is lost with a request's own session, when all ends, or when clients have left.
func TestU05NoLoss(t *testing.T) {
	o, log, _ := lossy(t)
	single, left, own := o.Hold(LostExit, false), o.Hold(LostExit, false), o.Hold(LostSession, true)
	req := clientOf("one")
	req.Profile.Single = true
	single.Note(req)
	single.Ended()()
	left.Note(clientOf("one"))
	left.End()
	left.Ended()()
	if log.String() != "" {
		t.Errorf("the log has %s", log)
	}
	own.NoteLater(clientOf("one"))()
	own.Ended()()
	if got := log.String(); !strings.Contains(got, "its session has ended") {
		t.Errorf("the log has %s, want that a client's own session has ended", got)
	}
	if why := o.Owed(clientOf("one")); why != "" {
		t.Errorf("Owed() = %q, want nothing: it knows", why)
	}
	last := o.Hold(LostExit, false)
	last.Note(clientOf("one"))
	o.Losses.Stop()
	last.Ended()()
	if why := o.Owed(clientOf("one")); why != "" {
		t.Errorf("Owed() = %q after the end of all", why)
	}
}

// A server that is replaced takes the state of all of its clients with it, and of no other
// server's.
func TestU05ReplacedServer(t *testing.T) {
	o, _, _ := lossy(t)
	wiki := *o
	wiki.Name = "wiki"
	here, there := o.Hold(LostExit, false), wiki.Hold(LostSession, false)
	here.Note(clientOf("one"))
	there.Note(clientOf("one"))
	o.Losses.Replaced("docs")
	if why, other := o.Owed(clientOf("one")), wiki.Owed(clientOf("one")); why != LostReplaced || other != "" {
		t.Errorf("told %q and %q, want %q and nothing", why, other, LostReplaced)
	}
}

// What the last requests to a server that was replaced have left there is told by the next server's
// sessions, also by one that was open before those requests had ended; once.
func TestU05LastRequestsToAReplacedServer(t *testing.T) {
	o, log, counts := lossy(t)
	open := o.Hold(LostExit, false)
	o.Losses.Replaced("docs")
	opened := o.Hold(LostExit, false) // by a request that had come before
	next := o.Hold(LostExit, false)
	one, two := clientOf("one"), clientOf("two")
	open.Note(one)
	opened.Note(two)
	for _, h := range []*Held{open, opened, nil} {
		h.Closed()()
	}
	for _, tt := range []struct {
		req  *mcp.Request
		want string
	}{{one, "replaced"}, {one, ""}, {two, "replaced"}, {two, ""}} {
		if why := next.Owed(tt.req); why != tt.want {
			t.Errorf("Owed(%s) = %q, want %q", tt.req.ClientInfo, why, tt.want)
		}
	}
	if n := counts.Count("lost replaced"); n != 2 || strings.Count(log.String(), "cause=replaced") != 2 {
		t.Errorf("%d clients were counted, want 2; the log has %s", n, log)
	}
	next.Note(one)
	o.Losses.Stop()
	next.Closed()()
	if why := o.Owed(one); why != "" {
		t.Errorf("Owed() = %q after the end of all", why)
	}
}

// What is remembered has bounds, and it is said that they are reached.
func TestU05LossesAreBounded(t *testing.T) {
	o, log, counts := lossy(t)
	for i := range maxLosses / maxHolders {
		h := o.Hold(LostExit, false)
		for k := range maxHolders {
			h.Note(clientOf(fmt.Sprintf("%d-%d", i, k)))
		}
		h.Note(clientOf("0-0"))
		h.Ended()()
	}
	if n := counts.Count("limit state_lost"); n != maxLosses/maxHolders-1 {
		t.Errorf("the limit was counted %d times, want for each session that has one client more", n)
	}
	more := o.Hold(LostExit, false)
	more.Note(clientOf("more"))
	more.Ended()()
	if n := o.Losses.untold.Len(); n != maxLosses {
		t.Errorf("%d losses are remembered, want %d", n, maxLosses)
	}
	if why := o.Owed(clientOf("more")); why != LostExit {
		t.Errorf("Owed() = %q, want the latest loss to be told", why)
	}
	if !strings.Contains(log.String(), "too many are to be told") || counts.Count("limit state_lost") != maxLosses/maxHolders {
		t.Error("nothing says that a client will not be told")
	}
}
