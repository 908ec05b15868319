package back

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An ownDiary writes down the requests of the gateway's own, and how they have ended.
type ownDiary struct {
	mu    sync.Mutex
	lines []string
}

func (d *ownDiary) Begin(*trace.Request) trace.Record    { return nil }
func (d *ownDiary) BeginOwn(*trace.Request) trace.Record { return d }
func (d *ownDiary) Upstream(x *trace.Exchange)           { x.Context.Traceparent = "00-own-" + x.Method }
func (d *ownDiary) Event(trace.Event)                    {}
func (d *ownDiary) Follows(trace.Record)                 {}
func (d *ownDiary) End(*trace.Request)                   {}

func (d *ownDiary) Answered(x *trace.Exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := x.Server + " " + x.Method + " " + x.Era
	if _, err := x.Outcome(); err != nil {
		line += ": " + err.Error()
	}
	d.lines = append(d.lines, line)
}

func (d *ownDiary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.lines
	d.lines = nil
	return all
}

// Discovery, probes and listen requests are told of, each once, and have the context of their
// spans in _meta and in the headers.
func TestOwnRequestsAreObserved(t *testing.T) {
	p := newUpPeer(t)
	p.says(spec.MethodDiscover, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upStream(w)(ackText, granted, m.ID)
	}
	d := &ownDiary{}
	want := func(lines ...string) {
		t.Helper()
		if got := d.take(); !slices.Equal(got, lines) {
			t.Errorf("told of %q, want %q", got, lines)
		}
	}
	b := p.back(Options{Options: upstream.Options{Observers: trace.New(d)}})
	if _, err := b.Describe(t.Context(), &mcp.Request{Method: spec.MethodDiscover, Profile: listenProfile}); err != nil {
		t.Fatal(err)
	}
	want("scripted server/discover modern")
	s, err := b.openListen(t.Context(), listenProfile, wantAll)
	if err != nil {
		t.Fatal(err)
	}
	want("scripted subscriptions/listen modern")
	s.Close()
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, http.StatusOK, m.ID, spec.CodeInternal, "")
	}
	if _, err := b.openListen(t.Context(), listenProfile, wantAll); err == nil {
		t.Error("a refusal is no error")
	}
	if got := d.take(); len(got) != 1 || !strings.HasPrefix(got[0], "scripted subscriptions/listen modern: ") {
		t.Errorf("told of %q, want the refusal", got)
	}
	o := Options{Options: upstream.Options{Name: "scripted", URL: p.URL, ClientInfo: []byte(upInfo), Observers: trace.New(d)}}
	if v, err := Probe(t.Context(), o, mcp.Probing{}); err != nil || v.Era != spec.Modern {
		t.Fatalf("Probe = %+v, %v", v, err)
	}
	want("scripted server/discover modern")
	for _, method := range []string{spec.MethodDiscover, spec.MethodListen} {
		for _, seen := range p.requests(method) {
			if got, _ := wire.GetString(wire.Get([]byte(seen.params), "_meta"), "traceparent"); got != "00-own-"+method || seen.header.Get("Traceparent") != got {
				t.Errorf("%s has the context %q in _meta, %q in the header", method, got, seen.header.Get("Traceparent"))
			}
		}
	}
}
