package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A next Handler is the server behind a Control.
type next struct {
	body  string
	err   error
	calls int
	saw   *mcp.Request
	then  func(*mcp.Request, mcp.Caller) // before it answers; may be nil
}

func (n *next) Serve(_ context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	n.calls++
	n.saw = req
	if n.then != nil {
		n.then(req, x)
	}
	if n.err != nil {
		return nil, n.err
	}
	return mcp.NewResult([]byte(n.body), nil), nil
}

// Every request ends in one way, for its sender and in the audit log, and only what is
// allowed reaches the server.
func TestHandler(t *testing.T) {
	const call, text = spec.MethodToolsCall, `{"content":[]}`
	for _, tt := range []struct {
		name           string
		method, params string
		extra          string
		scopes         []string
		next           next
		want           string // part of the error; empty for a result
		status         int    // of the refusal
		line           string
	}{
		{name: "allowed", method: call, params: `{"name":"read_x","arguments":{}}`, next: next{body: text}, line: "tools/call tool:read_x allow 2 ok"},
		{name: "a tool that fails", method: call, params: `{"name":"read_x"}`, next: next{body: `{"content":[],"isError":true}`}, line: "tools/call tool:read_x allow 2 tool_error"},
		{name: "an error of the server", method: call, params: `{"name":"read_x"}`, next: next{err: wire.Errorf(-32000, "no")}, want: "no", line: "tools/call tool:read_x allow 2 error"},
		{name: "a server that is gone", method: call, params: `{"name":"read_x"}`, next: next{err: errors.New("EOF")}, want: "EOF", line: "tools/call tool:read_x allow 2 failed"},
		{name: "denied by default", method: call, params: `{"name":"other"}`, want: `tools/call of "other"`, status: statusDenied, line: "tools/call tool:other deny 0 refused"},
		{name: "denied by a rule", method: call, params: `{"name":"read_secret"}`, want: "the policy of server \"files\" denies", status: statusDenied, line: "tools/call tool:read_secret deny 1 refused"},
		{name: "without a scope", method: call, params: `{"name":"write_x"}`, want: "files:write", status: statusForbidden, line: "tools/call tool:write_x deny 0 refused"},
		{name: "with the scope", method: call, params: `{"name":"write_x"}`, scopes: []string{"files:write"}, next: next{body: text}, line: "tools/call tool:write_x allow 3 ok"},
		{name: "a name of two readings", method: call, params: `{"name":"read_x","Name":"secret"}`, want: "can't be held against the policy", status: statusDenied, line: "tools/call tool: deny 0 refused"},
		{name: "an envelope of two readings", method: call, params: `{"name":"read_x"}`, extra: `"PARAMS":{"name":"secret"}`, want: "can't be held against the policy", status: statusDenied, line: "tools/call : deny 0 refused"},
		{name: "a resource", method: spec.MethodResourcesRead, params: `{"uri":"file:///open/a"}`, next: next{body: `{"contents":[]}`}, line: "resources/read resource:file:///open/a allow 2 ok"},
		{name: "a resource beside it", method: spec.MethodResourcesRead, params: `{"uri":"file:///open/../etc"}`, want: "denies you", status: statusDenied, line: "resources/read resource:file:///open/../etc deny 0 refused"},
		{name: "a ping", method: spec.MethodPing, next: next{body: `{}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log, server := newAudit(t), tt.next
			req := requestOf(tt.method, tt.params)
			req.Extra, req.Identity.Scopes = []byte(tt.extra), tt.scopes
			res, err := New(Options{Server: "files", Policy: readers(), Audit: log.Log}).Handler(&server).Serve(t.Context(), req, nil)
			res.Release()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Serve = %v, want %q", err, tt.want)
			}
			if r := (*mcp.Refusal)(nil); errors.As(err, &r) != (tt.status != 0) || r != nil && (r.Status != tt.status || !r.Barred || server.calls > 0) {
				t.Errorf("the refusal is %+v, and the server got %d requests; want the status %d", r, server.calls, tt.status)
			}
			if got := strings.Join(log.lines(t), "\n"); got != tt.line {
				t.Errorf("the audit log has %q, want %q", got, tt.line)
			}
		})
	}
}

// A request whose client has left is cancelled, whatever the server says then.
func TestHandlerOfACancelledRequest(t *testing.T) {
	log := newAudit(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := next{err: context.Canceled, then: func(*mcp.Request, mcp.Caller) { cancel() }}
	if _, err := New(Options{Server: "files", Audit: log.Log}).Handler(&server).Serve(ctx, requestOf(spec.MethodToolsCall, `{"name":"a"}`), nil); err == nil {
		t.Error("Serve = nil, want the error")
	}
	if got := log.lines(t); !slices.Equal(got, []string{"tools/call tool:a allow 0 cancelled"}) {
		t.Errorf("the audit log has %q", got)
	}
}

// What only looks odd is recorded and passed on, where nothing depends on what it says.
func TestHandlerThatOnlyRecords(t *testing.T) {
	log, server := newAudit(t), next{body: `{}`}
	res, err := New(Options{Server: "files", Audit: log.Log}).Handler(&server).Serve(t.Context(), requestOf(spec.MethodToolsCall, `{"NAME":"a"}`), nil)
	res.Release()
	if err != nil || server.calls != 1 {
		t.Errorf("Serve = %v after %d calls, want it passed on", err, server.calls)
	}
	if got := log.lines(t); !slices.Equal(got, []string{"tools/call : allow 0 ok"}) {
		t.Errorf("the audit log has %q", got)
	}
}

// A request too many is refused with when to come again, and a place is given back however
// the request ends.
func TestF12HandlerKeepsRates(t *testing.T) {
	for _, tt := range []struct {
		name string
		next next
	}{{"answered", next{body: `{}`}}, {"failed", next{err: errors.New("EOF")}}} {
		t.Run(tt.name, func(t *testing.T) {
			log, metrics, server := newAudit(t), &limits{}, tt.next
			h := New(Options{Server: "files", Audit: log.Log, Metrics: metrics, Limiter: policy.NewLimiter(policy.Rates{Principal: policy.Rate{Concurrent: 1}})}).Handler(&server)
			req := requestOf(spec.MethodToolsCall, `{"name":"a"}`)
			var within, legacy error
			server.then = func(*mcp.Request, mcp.Caller) {
				server.then = nil
				_, within = h.Serve(t.Context(), req, nil)
				old := *req
				old.Era = spec.Legacy
				_, legacy = h.Serve(t.Context(), &old, nil)
			}
			for range 2 { // the second has the place of the first
				res, _ := h.Serve(t.Context(), req, nil) // the server's error, if there is one
				res.Release()
			}
			r := (*mcp.Refusal)(nil)
			if !errors.As(within, &r) || r.Status != statusTooMany || !r.Later || r.RetryAfter < time.Millisecond {
				t.Errorf("a request too many = %+v, want 429 and when to come again", within)
			}
			const words, data = "try again in 1 second, or raise rate.principal", `{"retryAfter":1}`
			if !errors.As(legacy, &r) || r.Status != statusDenied || r.Later || !strings.Contains(r.Err.Message, words) || string(r.Err.Data) != data {
				t.Errorf("one of a legacy client = %+v, want 200, %q and %s", legacy, words, data)
			}
			if server.calls != 2 || !slices.Equal(metrics.hit, []string{"files rate.principal", "files rate.principal"}) {
				t.Errorf("the server got %d calls, and the metric says %v", server.calls, metrics.hit)
			}
			if got := log.lines(t); len(got) != 4 || got[0] != "tools/call tool:a limit 0 refused" {
				t.Errorf("the audit log has %q", got)
			}
		})
	}
}

// Who may not open what was pinned otherwise, or ask for what it is.
func TestHandlerRefusesToolsThatHaveChanged(t *testing.T) {
	log, server := newAudit(t), next{body: `{}`}
	h := New(Options{Server: "files", Audit: log.Log, Pins: pinned(t, `[{"name":"old"}]`)}).Handler(&server)
	for _, name := range []string{"old", "new"} {
		res, err := h.Serve(t.Context(), requestOf(spec.MethodToolsCall, `{"name":"`+name+`"}`), nil)
		res.Release()
		if (err == nil) != (name == "old") {
			t.Errorf("calling %s: %v", name, err)
		}
	}
	if got := log.lines(t); !slices.Equal(got, []string{"tools/call tool:old allow 0 ok", "tools/call tool:new deny 0 refused"}) || server.calls != 1 {
		t.Errorf("the server got %d calls, and the audit log has %q", server.calls, got)
	}
}

// The handshake is for those whom a rule allows anything, and what caches keep of a server
// with a policy is for its reader.
func TestControlOfTheHandshake(t *testing.T) {
	log := newAudit(t)
	c := New(Options{Server: "files", Audit: log.Log, Policy: policy.New(false, []policy.Rule{{Principals: []string{"bob"}}})})
	if c.Open(requestOf(spec.MethodDiscover, `{}`)) == nil {
		t.Error("Ada may ask what the server is")
	}
	bob := requestOf(spec.MethodDiscover, `{}`)
	bob.Share.Principal = "bob"
	if err := c.Open(bob); err != nil {
		t.Errorf("Open of Bob's = %v", err)
	}
	odd := &wire.Message{Method: spec.MethodInitialize, Extra: []byte(`"Method":"tools/call"`)}
	if c.OpenRelay(bob, odd) == nil {
		t.Error("a handshake of two readings is passed on")
	}
	public := &mcp.Description{Cache: mcp.CacheHint{TTL: 5, Public: true}}
	if got := c.Description(public); got.Cache.Public || got.Cache.TTL != 5 || !public.Cache.Public {
		t.Errorf("Description = %+v of %+v, want a private copy", got.Cache, public.Cache)
	}
	if (*Control)(nil).Description(public) != public || New(Options{}) != nil {
		t.Error("what controls nothing is something")
	}
}

// Of requests that open a subscription Admit decides, of no others: these are decided on
// where they are served.
func TestAdmit(t *testing.T) {
	log := newAudit(t)
	c := New(Options{Server: "files", Policy: readers(), Audit: log.Log})
	for _, tt := range []struct {
		method, params string
		refused        bool
	}{
		{spec.MethodSubscribe, `{"uri":"file:///open/a"}`, false},
		{spec.MethodSubscribe, `{"uri":"file:///etc/a"}`, true},
		{spec.MethodListen, `{"notifications":{"resourceSubscriptions":["file:///etc/a"]}}`, false}, // it is narrowed
		{spec.MethodListen, `{"notifications":{},"Notifications":{}}`, true},
		{spec.MethodToolsCall, `{"name":"other"}`, false},
	} {
		if err := c.Admit(requestOf(tt.method, tt.params)); (err != nil) != tt.refused {
			t.Errorf("Admit(%s %s) = %v, want refused: %v", tt.method, tt.params, err, tt.refused)
		}
	}
	if got := log.lines(t); len(got) != 2 {
		t.Errorf("the audit log has %q, want what was refused", got)
	}
}
