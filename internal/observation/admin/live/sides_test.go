package live

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// arrived begins a call that has come by HTTP.
func (s *stage) arrived(header http.Header) *trace.Request {
	return s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Name: "t", Era: "modern", Arrival: &trace.Arrival{Protocol: "http", Header: header}})
}

// A call has the headers of both sides, without what grants access, whoever set it: the names of
// fields tell, and the secrets of the configuration.
func TestHardeningHeaders(t *testing.T) {
	s := newStage("configured-secret")
	s.SetBodies(true)
	defer s.Look()()
	r := s.arrived(http.Header{"Authorization": {"Bearer of-the-client"}, "Cookie": {"of-the-client"}, "Mcp-Session-Id": {"of-the-client"}, "X-Api-Key": {"of-the-client"}, "Mcp-Name": {"t"}, "X-Other": {"a", "configured-secret"}})
	x := r.Upstream(trace.Exchange{Method: "tools/call", Era: "legacy"})
	x.Head(trace.Head{Direction: trace.Sent, Fields: http.Header{"Authorization": {"of-the-bridge"}}})
	x.Head(trace.Head{Direction: trace.Received, Status: 200, Fields: http.Header{"Set-Cookie": {"of-the-server"}, "Content-Type": {"application/json"}}})
	r.Head(trace.Head{Direction: trace.Sent, Status: 502, Fields: http.Header{"Content-Type": {"application/json"}}})
	got := fmt.Sprintf("%+v", s.Call(r.RequestID()).Heads)
	for _, want := range []string{"From:client To:mcpbridge Status:0", "{Name:Mcp-Name Value:t}", "{Name:X-Other Value:a, [hidden]}", "{Name:Authorization Value:[hidden]}", "From:server To:mcpbridge Status:200", "From:mcpbridge To:client Status:502"} {
		if !strings.Contains(got, want) {
			t.Errorf("the headers have no %s: %s", want, got)
		}
	}
	if strings.Contains(got, "of-the-") || strings.Contains(got, "configured") {
		t.Errorf("the headers have what grants access: %s", got)
	}
}

// Headers are kept with messages alone, and are bounded as these are.
func TestHeadersAreBounded(t *testing.T) {
	s := newStage()
	defer s.Look()()
	r := s.arrived(http.Header{"Mcp-Name": {"t"}})
	if c := s.Call(r.RequestID()); len(c.Heads) != 0 {
		t.Errorf("without admin_bodies there is %+v", c.Heads)
	}
	s.SetBodies(true)
	many := http.Header{}
	for i := range 1000 {
		many.Set(fmt.Sprint("X-", i), strings.Repeat("x", 10_000))
	}
	r = s.arrived(many)
	for range 100 {
		r.Head(trace.Head{Direction: trace.Sent, Status: 200, Fields: many})
	}
	c := s.Call(r.RequestID())
	if len(c.Heads) != maxParts || len(c.Heads[0].Fields) != maxFields || len(c.Heads[0].Fields[0].Value) > maxField+20 || c.Left != 101-maxParts {
		t.Errorf("%d headers of %d fields are kept, %d left", len(c.Heads), len(c.Heads[0].Fields), c.Left)
	}
	if s.bodies > maxBodies || s.bodies == 0 {
		t.Errorf("%d bytes are counted", s.bodies)
	}
}

// The line of a call has both eras, and the words of a tool that failed.
func TestLineOfACall(t *testing.T) {
	s := newStage()
	s.SetBodies(true)
	defer s.Look()()
	for _, tt := range []struct{ body, want string }{
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no such file"},{"type":"image"}],"isError":true}}`, "no such file"},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\"isError\":true"}],"isError":false}}`, "failed"},
		{`{"content":[{"type":"text","text":"bare"}],"isError":true}`, "bare"},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}`, "failed"},
	} {
		r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Era: "modern"})
		r.Upstream(trace.Exchange{Method: "tools/call", Era: "legacy"}).End(nil)
		r.Note("tool_error", fmt.Errorf("failed"))
		r.Sent([]byte(tt.body))
		r.End(nil)
		events, _, _ := s.Since(s.Last()-1, 1)
		if e := events[0]; e.Error != tt.want || e.Era != "modern" || e.ServerEra != "legacy" {
			t.Errorf("the line of %s is %+v, want the error %s", tt.body, e, tt.want)
		}
	}
}

// A modern client answers a modern server by sending its request again: the requestState tells
// that this is one call, of the same client and tool.
func TestThread(t *testing.T) {
	s := newStage()
	s.SetBodies(true)
	defer s.Look()()
	begin := func(name, state string) *trace.Request {
		r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Name: name})
		r.Received([]byte(`{"params":{"requestState":"` + state + `"}}`))
		return r
	}
	hand := func(r *trace.Request, state string) {
		r.Sent([]byte(`{"result":{"resultType":"input_required","requestState":"` + state + `"}}`))
		r.End(nil)
	}
	first := begin("t", "none")
	hand(first, "one")
	second := begin("t", "one")
	hand(second, "two")
	other, third := begin("another", "two"), begin("t", "two")
	third.End(nil)
	if c := s.Call(second.RequestID()); c.Former != first.RequestID() || c.Next != third.RequestID() {
		t.Errorf("the second follows %q, and %q follows it", c.Former, c.Next)
	}
	if c := s.Call(other.RequestID()); c.Former != "" {
		t.Errorf("a call of another tool follows %q", c.Former)
	}
	events, _, _ := s.Since(0, 10)
	if e := events[len(events)-1]; e.Call != third.RequestID() || e.First != first.RequestID() {
		t.Errorf("the line of the third is %+v, want the first as first", e)
	}
	for range maxCalls {
		s.keep(&record{feed: s.Feed, id: fmt.Sprint("r", s.Last(), len(s.byID))})
		s.add(Event{})
	}
	if len(s.byState) != 0 {
		t.Errorf("%d states are kept of calls that are not", len(s.byState))
	}
}

// However many notifications pass, there is room for the response; and calls of whoever looks are
// shown, however many others pass.
func TestRoomForWhatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.opts.Looker = "admin"
		s.SetBodies(true)
		defer s.Look()()
		for range 2 * maxBurst {
			s.call("others")
		}
		r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Principal: "admin"})
		if r == nil {
			t.Fatal("the call of whoever looks is not taken")
		}
		for range 100 {
			r.Sent([]byte(`{"jsonrpc":"2.0","method":"notifications/progress"}`))
		}
		r.Sent([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		c := s.Call(r.RequestID())
		if n := len(c.Messages); n != maxParts/2+1 || !strings.Contains(c.Messages[n-1].Text, "result") || c.Left != 100-maxParts/2 {
			t.Errorf("%d messages, %d left", n, c.Left)
		}
		for range 2 * maxBurst {
			s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Principal: "admin"})
		}
		if n := s.Skipped(); n != maxBurst+maxBurst+1 {
			t.Errorf("%d skipped, want those beyond both paces", n)
		}
	})
}
