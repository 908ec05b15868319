package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// renamed are the names that clients see in these tests: read_a is called ra by them.
func renamed(t *testing.T) *names.Map {
	t.Helper()
	m, err := names.New(names.Options{
		Tools:     names.Part{Deny: []string{"hidden*"}, Rename: map[string]string{"read_a": "ra", "other": "read_o", "write_x": "w"}},
		Resources: names.Part{Deny: []string{"file:///vault*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Policies and the audit log have the server's own names, and so has the server; what is hidden
// is refused before a policy is asked, and recorded as it was asked for.
func TestG03OwnNamesDecide(t *testing.T) {
	const call = spec.MethodToolsCall
	for _, tt := range []struct {
		name, method, params string
		want                 string // part of the error; empty for a result
		sent                 string // the params that the server got
		line                 string
	}{
		{"renamed", call, `{"name" : "ra","arguments":{"name":"ra"}}`, "", `{"name" : "read_a","arguments":{"name":"ra"}}`, "tools/call tool:read_a allow 2 ok"},
		{"as it is", call, `{ "name":"read_b"}`, "", `{ "name":"read_b"}`, "tools/call tool:read_b allow 2 ok"},
		{"its own name", call, `{"name":"read_a"}`, "Unknown tool: read_a", "", "tools/call tool:read_a deny 0 refused"},
		{"a shown name that the policy would allow", call, `{"name":"read_o"}`, "denies you", "", "tools/call tool:other deny 0 refused"},
		{"a scope that it lacks", call, `{"name":"w"}`, "files:write", "", "tools/call tool:write_x deny 0 refused"},
		{"hidden", call, `{"name":"hidden_x"}`, "Unknown tool: hidden_x", "", "tools/call tool:hidden_x deny 0 refused"},
		{"a hidden resource", spec.MethodResourcesRead, `{"uri":"file:///open/../vault"}`, "Resource not found", "", "resources/read resource:file:///open/../vault deny 0 refused"},
		{"of two readings", call, `{"name":"ra","NAME":"hidden"}`, "can't be held against the policy", "", "tools/call tool: deny 0 refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log, server := newAudit(t), &next{body: `{"content":[]}`}
			res, err := New(Options{Server: "files", Names: renamed(t), Policy: readers(), Audit: log.Log}).Handler(server).Serve(t.Context(), requestOf(tt.method, tt.params), nil)
			res.Release()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Serve = %v, want %q", err, tt.want)
			}
			if (server.saw != nil) != (tt.sent != "") || server.saw != nil && string(server.saw.Params) != tt.sent {
				t.Errorf("the server got %+v, want %s", server.saw, tt.sent)
			}
			if got := strings.Join(log.lines(t), "\n"); got != tt.line {
				t.Errorf("the audit log has %q, want %q", got, tt.line)
			}
		})
	}
}

// Rates are those of the server's own names, and what is hidden uses nothing of them.
func TestG03RatesOfOwnNames(t *testing.T) {
	limiter := policy.NewLimiter(policy.Rates{Principal: policy.Rate{PerSecond: 0.001, Burst: 2}, Tools: map[string]policy.Rate{"read_a": {PerSecond: 0.001, Burst: 1}, "ra": {PerSecond: 0.001, Burst: 9}}})
	h := New(Options{Server: "files", Names: renamed(t), Limiter: limiter}).Handler(&next{body: `{"content":[]}`})
	call := func(name string) string {
		_, err := h.Serve(t.Context(), requestOf(spec.MethodToolsCall, `{"name":"`+name+`"}`), nil)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if got := call("hidden") + call("ra"); got != "Unknown tool: hidden (code -32602)" {
		t.Errorf("a hidden one, and the first call: %s", got)
	}
	if got := call("ra"); !strings.Contains(got, "rate.tools") {
		t.Errorf("the second call: %q, want the rate of read_a", got)
	}
}

// Pins compare what the server says, whatever clients see of it.
func TestG03PinsAreOfOwnNames(t *testing.T) {
	pins := pinned(t, `[{"name":"read_a","description":"A"},{"name":"hidden_x","description":"H"}]`)
	server := &next{body: `{"tools":[{"name":"read_a","description":"A"},{"name":"hidden_x","description":"X"}]}`}
	h := New(Options{Server: "files", Names: renamed(t), Pins: pins}).Handler(server)
	res, err := h.Serve(t.Context(), requestOf(spec.MethodToolsList, `{}`), nil)
	if err != nil || string(res.Body) != `{"tools":[{"name":"ra","description":"A"}]}` {
		t.Errorf("the list is %s, %v", res.Body, err)
	}
	if pins.Refusal("hidden_x") == nil || pins.Refusal("read_a") != nil {
		t.Error("a hidden tool was not compared, or a renamed one is refused")
	}
	server.body = `{"tools":[{"name":"read_a","description":"changed"}]}`
	if res, err = h.Serve(t.Context(), requestOf(spec.MethodToolsList, `{}`), nil); err != nil || string(res.Body) != `{"tools":[]}` {
		t.Errorf("after a change the list is %s, %v", res.Body, err)
	}
	if _, err := h.Serve(t.Context(), requestOf(spec.MethodToolsCall, `{"name":"ra"}`), nil); err == nil || !strings.Contains(err.Error(), "not accepted") {
		t.Errorf("a call of what has changed: %v", err)
	}
}

// A list in which nothing changes is the server's text, and stays public; one of what nothing is
// said of is not even read.
func TestG03ListsThatPass(t *testing.T) {
	c := New(Options{Server: "files", Names: renamed(t)})
	for method, body := range map[string]string{
		spec.MethodToolsList:   `{"tools" : [ {"name":"b" }, {"name": "c"} ],"cacheScope":"public"}`,
		spec.MethodPromptsList: `{"prompts":"none of ours", "cacheScope":"public"}`,
	} {
		text := []byte(body)
		res, err := c.Handler(fixed{text}).Serve(t.Context(), requestOf(method, `{}`), nil)
		if err != nil || &res.Body[0] != &text[0] {
			t.Errorf("%s = %s, %v, want the very text", method, res.Body, err)
		}
	}
}

// A list in which two tools would have one name is an error, and what it held is given back.
func TestG03ClashReleases(t *testing.T) {
	log, released := newAudit(t), false
	h := New(Options{Server: "files", Names: renamed(t), Audit: log.Log}).Handler(releasing{[]byte(`{"tools":[{"name":"ra"},{"name":"read_a"}]}`), &released})
	res, err := h.Serve(t.Context(), requestOf(spec.MethodToolsList, `{}`), nil)
	if we := (*wire.Error)(nil); res != nil || !errors.As(err, &we) || we.Code != spec.CodeInternal || !strings.Contains(we.Message, `"read_a" and "ra"`) {
		t.Errorf("Serve = %v, %v, want an error with both names", res, err)
	}
	if !released {
		t.Error("the result was not released")
	}
	if got := log.lines(t); !slices.Equal(got, []string{"tools/list : allow 0 error"}) {
		t.Errorf("the audit log has %q", got)
	}
}

type releasing struct {
	body []byte
	done *bool
}

func (r releasing) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return mcp.NewResult(r.body, func() { *r.done = true }), nil
}

// In a session that is passed on the server gets its own names, and nothing else changes.
func TestG03RelayedCalls(t *testing.T) {
	for _, tt := range []struct{ name, text, sent, answer, want, lost string }{
		{"renamed", `{"jsonrpc":"2.0", "id":1,"method":"tools/call","params": {"name":"ra"} }`, `{"jsonrpc":"2.0", "id":1,"method":"tools/call","params": {"name":"read_a"} }`, `{"id":1,"result":{}}`, `{"id":1,"result":{}}`, ""},
		{"hidden", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hidden"}}`, "", "", "", "Unknown tool: hidden"},
		{"a list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"id":1,"result":{"tools":[{"name":"hidden"},{"x":1e0,"name":"read_a"}]}}`, `{"id":1,"result":{"tools":[{"x":1e0,"name":"ra"}]}}`, ""},
		{"a clash", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"id":1,"result":{"tools":[{"name":"ra"}]}}`, "", `"read_a" and "ra"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up, client := &keptSession{upstreamSession: upstreamSession{answer: tt.answer}}, heardCall{&heard{id: &mcp.Identity{Principal: "ada"}}}
			New(Options{Server: "files", Names: renamed(t)}).Session(legacyHello()).Relay(up).Call(message(t, tt.text), client)
			if client.answer != tt.want || (client.lost != nil) != (tt.lost != "") || client.lost != nil && !strings.Contains(client.lost.Error(), tt.lost) {
				t.Errorf("the answer is %s, %v, want %s %s", client.answer, client.lost, tt.want, tt.lost)
			}
			if up.text != tt.sent {
				t.Errorf("the server got %s, want %s", up.text, tt.sent)
			}
			if up.text != "" && string(message(t, up.text).Params) != up.params {
				t.Errorf("params are %s beside the text %s", up.params, up.text)
			}
		})
	}
}

// A keptSession keeps the message that it was sent.
type keptSession struct {
	upstreamSession
	text, params string
}

func (k *keptSession) Call(m *wire.Message, c mcp.RelayedCall) {
	k.text, k.params = string(m.Text), string(m.Params)
	k.upstreamSession.Call(m, c)
}

// What is sent as a notification or beside an initialize can't reach what is hidden.
func TestG03RelayedNotifications(t *testing.T) {
	c := New(Options{Server: "files", Names: renamed(t)})
	up := &upstreamSession{}
	r := c.Session(legacyHello()).Relay(up)
	for _, text := range []string{
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"hidden"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"METHOD":"tools/call","params":{"name":"hidden"}}`,
	} {
		if err := r.Send(t.Context(), message(t, text)); err == nil || len(up.sent) > 0 {
			t.Errorf("Send(%s) = %v, and the server got %q", text, err, up.sent)
		}
	}
	if err := r.Send(t.Context(), message(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil || len(up.sent) != 1 {
		t.Errorf("a notification: %v, %q", err, up.sent)
	}
	if err := c.OpenRelay(legacyHello(), message(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{},"Method":"tools/call"}`)); err == nil {
		t.Error("an initialize of two readings is passed on")
	}
}

// Hidden resources are followed by nobody, and their updates reach nobody.
func TestG03SubscriptionsAreNarrowed(t *testing.T) {
	const open, vault, other = "file:///open/a", "file:///vault/a", "file:///open/%2e%2e/vault"
	c, behind := New(Options{Server: "files", Names: renamed(t)}), &topics{}
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	sub := c.Subscription(requestOf(spec.MethodListen, `{}`), mail, mcp.SubscribeOptions{Stream: true}, behind)
	if honored, err := sub.Add(t.Context(), mcp.Filter{Tools: true, URIs: []string{vault, open, other}}); err != nil || !slices.Equal(honored.URIs, []string{open}) || !slices.Equal(behind.asked.URIs, []string{open}) {
		t.Errorf("Add honors %+v, %v, and asked for %v", honored, err, behind.asked.URIs)
	}
	mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ResourceUpdated, URI: "file:///"}, URI: vault})
	if ev, ok := mail.Next(); ok {
		t.Errorf("the mailbox has %v", ev)
	}
	if err := c.Admit(requestOf(spec.MethodSubscribe, `{"uri":"`+other+`"}`)); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a resource of a session: %v", err)
	}
	server, heard := &next{body: `{}`, then: func(_ *mcp.Request, x mcp.Caller) {
		for _, uri := range []string{vault, open} {
			_ = x.Notify(t.Context(), mcp.Notification{Method: spec.NotifyResourceUpdated, Params: []byte(`{"uri":"` + uri + `"}`)})
		}
	}}, &told{}
	filter := `{"notifications":{"taskIds":["t"],"x":1,"resourceSubscriptions":["` + vault + `","` + open + `"]}}`
	if _, err := c.Handler(server).Serve(t.Context(), requestOf(spec.MethodListen, filter), heard); err != nil {
		t.Fatal(err)
	}
	if got := string(server.saw.Params); got != `{"notifications":{"taskIds":["t"],"x":1,"resourceSubscriptions":["`+open+`"]}}` {
		t.Errorf("a stream of its own asks for %s", got)
	}
	if !slices.Equal(heard.uris, []string{`notifications/resources/updated {"uri":"` + open + `"}`}) {
		t.Errorf("it was told of %v", heard.uris)
	}
}

// A refusal of what controls the access to a server is told from one of the server's own: a group
// asks no other server then.
func TestG05RefusalsAreBarred(t *testing.T) {
	hides, err := names.New(names.Options{Resources: names.Part{Deny: []string{"file:///secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	limiter := policy.NewLimiter(policy.Rates{Principal: policy.Rate{Concurrent: 1}})
	ticket, err := limiter.Take(mcp.Share{Principal: "ada"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer ticket.Give()
	req := requestOf(spec.MethodResourcesRead, `{"uri":"file:///secret"}`)
	req.Share = mcp.Share{Principal: "ada"}
	for what, o := range map[string]Options{
		"hidden": {Server: "files", Names: hides}, "denied": {Server: "files", Policy: readers()}, "too much": {Server: "files", Limiter: limiter},
	} {
		for _, req.Era = range []spec.Era{spec.Modern, spec.Legacy} {
			server := next{body: `{}`}
			_, err := New(o).Handler(&server).Serve(t.Context(), req, nil)
			if r := (*mcp.Refusal)(nil); !errors.As(err, &r) || !r.Barred || server.calls > 0 {
				t.Errorf("%s: %v is not barred", what, err)
			}
		}
	}
	server := next{err: mcp.Refuse(spec.CodeInvalidParams, "no such resource")}
	_, err = New(Options{Server: "files", Names: hides}).Handler(&server).Serve(t.Context(), requestOf(spec.MethodResourcesRead, `{"uri":"file:///x"}`), nil)
	if r := (*mcp.Refusal)(nil); !errors.As(err, &r) || r.Barred {
		t.Errorf("the server's own refusal: %v", err)
	}
}
