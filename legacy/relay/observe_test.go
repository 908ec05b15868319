package relay_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/front"
)

// A diary writes down requests to servers that have ended, and whose they are.
type diary struct {
	mu    sync.Mutex
	lines []string
}

type entry struct {
	d  *diary
	of string
}

func (d *diary) Begin(r *trace.Request) trace.Record    { return &entry{d, "client's " + r.Method} }
func (d *diary) BeginOwn(r *trace.Request) trace.Record { return &entry{d, "own"} }

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (e *entry) Upstream(x *trace.Exchange) { x.Context.Traceparent = "00-of-the-span" }
func (e *entry) Event(trace.Event)          {}
func (e *entry) Follows(trace.Record)       {}
func (e *entry) End(*trace.Request)         {}

func (e *entry) Answered(x *trace.Exchange) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.d.lines = append(e.d.lines, e.of+": "+x.Method)
}

// The handshake that is passed on is part of the client's request, whose context the server
// gets in the headers; the message itself is not touched.
func TestHandshakeIsObservedOnce(t *testing.T) {
	p, d := legacytest.NewHTTPServer(t), &diary{}
	o := trace.New(d)
	b := newBack(t, back.Options{Options: upstream.Options{URL: p.URL, Observers: o}})
	st := newLinkedFront(t, func(f *front.Options) {
		f.Relayer = b
		f.Admit = func(r *mcp.Request) error {
			r.Profile.Scope = "docs/" + r.Session
			r.Trace = o.Begin(trace.Info{Server: "docs", Method: r.Method, ID: r.ID.String()})
			return nil
		}
	})
	if r := st.Send(t, "POST", legacytest.OddInitialize); r.Status != 200 {
		t.Fatalf("initialize = %d %s", r.Status, r.Body)
	}
	bridgetest.Eventually(t, "the handshake is told of", func() bool { return len(d.all()) > 0 })
	if got, want := d.all(), []string{"client's initialize: initialize"}; !slices.Equal(got, want) {
		t.Errorf("told of %q, want %q", got, want)
	}
	if got := p.Requests("initialize")[0]; got.Header.Get("Traceparent") != "00-of-the-span" {
		t.Errorf("the server got the context %q", got.Header.Get("Traceparent"))
	}
}
