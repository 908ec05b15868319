package router

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// openOnly allows what is called open to everybody, and everything to root.
func openOnly() *policy.Policy {
	return policy.New(false, []policy.Rule{
		{Principals: []string{"root"}},
		{Tools: []string{"open"}, Prompts: []string{"open"}, Resources: []string{"file:///open*"}},
	})
}

// guarded is a change of a rig's options: a policy for its server, and principals by name.
func guarded(p *policy.Policy) func(*Options) {
	return func(o *Options) {
		o.Servers[0].Access = access.Options{Policy: p}
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("X-User")), nil })
	}
}

// A door is a way by which a client reaches the server.
type door struct {
	name string
	// open returns what sends a message, and returns the text of the answer to it.
	open func(*testing.T, *rig) func(body string) string
	// modern says that requests have an envelope.
	modern bool
}

var doors = []door{
	{"modern over HTTP", func(t *testing.T, r *rig) func(string) string {
		return func(body string) string {
			m, err := wire.Parse([]byte(body), wire.Options{})
			if err != nil {
				return err.Error()
			}
			return r.send(t, http.MethodPost, body, modernHeaders(m.Method, headerName(&m))).body
		}
	}, true},
	{"modern over a WebSocket", func(t *testing.T, r *rig) func(string) string { return r.socket(t).ask }, true},
	{"modern over stdio", func(t *testing.T, r *rig) func(string) string { return r.connect(t).ask }, true},
	{"legacy over HTTP", func(t *testing.T, r *rig) func(string) string {
		session := r.enter(t)
		return func(body string) string {
			return r.send(t, http.MethodPost, body, legacyHeaders(session)).body
		}
	}, false},
	{"legacy in a batch", func(t *testing.T, r *rig) func(string) string {
		got := r.send(t, http.MethodPost, strings.Replace(hello, "2025-11-25", "2025-03-26", 1), legacyHeaders(""))
		session := got.header.Get("Mcp-Session-Id")
		return func(body string) string {
			ping := `{"jsonrpc":"2.0","id":"p","method":"ping"}`
			return r.send(t, http.MethodPost, "["+ping+","+body+"]", legacyHeaders(session)).body
		}
	}, false},
	{"legacy over a WebSocket", func(t *testing.T, r *rig) func(string) string { return r.shaken(t).ask }, false},
	{"legacy over stdio", func(t *testing.T, r *rig) func(string) string {
		l := r.connect(t)
		l.ask(hello)
		l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return l.ask
	}, false},
	{"legacy over HTTP+SSE", func(t *testing.T, r *rig) func(string) string {
		c := r.openEvents(t, "/sse/peer", nil)
		c.send(hello)
		c.event()
		return func(body string) string {
			c.send(body)
			_, data := c.event()
			return data
		}
	}, false},

	{"Q-01 legacy under a modern header", func(t *testing.T, r *rig) func(string) string {
		return r.odd(t, legacyHeaders(r.enter(t)), spec.HeaderProtocolVersion, "2026-07-28")
	}, false},
	{"Q-01 legacy under another revision", func(t *testing.T, r *rig) func(string) string {
		return r.odd(t, legacyHeaders(r.enter(t)), spec.HeaderProtocolVersion, "2024-11-05")
	}, false},
	{"Q-02 modern under a legacy header", func(t *testing.T, r *rig) func(string) string {
		return func(body string) string {
			m, err := wire.Parse([]byte(body), wire.Options{})
			if err != nil {
				return err.Error()
			}
			return r.odd(t, modernHeaders(m.Method, headerName(&m)), spec.HeaderProtocolVersion, "2025-11-25")(body)
		}
	}, true},
	{"Q-03 legacy that began under a modern header", func(t *testing.T, r *rig) func(string) string {
		h := legacyHeaders("")
		h.Set(spec.HeaderProtocolVersion, "2026-07-28")
		session := r.send(t, http.MethodPost, hello, h).header.Get(spec.HeaderSession)
		return r.odd(t, legacyHeaders(session), spec.HeaderProtocolVersion, "2026-07-28")
	}, false},
	{"Q-04 legacy in JSON alone", func(t *testing.T, r *rig) func(string) string {
		return r.odd(t, legacyHeaders(r.enter(t)), "Accept", "application/json")
	}, false},
	{"Q-04 legacy on streams alone", func(t *testing.T, r *rig) func(string) string {
		return r.odd(t, legacyHeaders(r.enter(t)), "Accept", "text/event-stream")
	}, false},
	{"Q-05 legacy in a revision that the server has made up", func(t *testing.T, r *rig) func(string) string {
		if r.peer == nil { // only a legacy server does
			return r.odd(t, legacyHeaders(r.enter(t)), spec.HeaderProtocolVersion, "2026-07-28")
		}
		r.peer.answer(spec.MethodInitialize, `{"protocolVersion":"2026-07-28","capabilities":`+everyCapability+`,"serverInfo":{"name":"peer","version":"7"}}`)
		return r.odd(t, legacyHeaders(r.enter(t)), spec.HeaderProtocolVersion, "2026-07-28")
	}, false},
}

// odd returns what posts messages with a header that is not as it should be.
func (r *rig) odd(t *testing.T, h http.Header, name, value string) func(body string) string {
	h.Set(name, value)
	return func(body string) string { return r.send(t, http.MethodPost, body, h).body }
}

// ask sends a request, and returns the answer.
func (l *line) ask(body string) string {
	l.t.Helper()
	l.send(body)
	for {
		if msg := l.next(); !strings.Contains(msg, `"method":`) {
			return msg
		}
	}
}

// headerName is what Mcp-Name has to say of a message.
func headerName(m *wire.Message) string {
	for _, member := range []string{"name", "uri"} {
		if text, ok := wire.GetString(m.Params, member); ok && m.Method != "completion/complete" {
			return text
		}
	}
	return ""
}

// request returns a request of a door's era. rest are members of params.
func (d *door) request(method, rest string) string {
	if d.modern {
		return modernBody("7", method, rest)
	}
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + rest + `}}`
}

// servers are the peers behind a rig, and what they were sent.
var policyPeers = []struct {
	name string
	rig  func(*testing.T, func(*Options)) (r *rig, sent func() string)
}{
	{"legacy server", func(t *testing.T, change func(*Options)) (*rig, func() string) {
		r := newRig(t, change)
		for method, answer := range policyAnswers {
			r.peer.answer(method, answer)
		}
		return r, func() string {
			r.peer.mu.Lock()
			defer r.peer.mu.Unlock()
			return strings.Join(r.peer.got, "\n")
		}
	}},
	{"modern server", func(t *testing.T, change func(*Options)) (*rig, func() string) {
		r, p := newModernRigWith(t, nil, change)
		for method, answer := range policyAnswers {
			p.answers[method] = `{"resultType":"complete","ttlMs":9000,"cacheScope":"public",` + answer[1:]
		}
		return r, func() string {
			p.mu.Lock()
			defer p.mu.Unlock()
			var all []string
			for _, m := range p.got {
				all = append(all, string(m.Text))
			}
			return strings.Join(all, "\n")
		}
	}},
}

var policyAnswers = map[string]string{
	"tools/call":               `{"content":[]}`,
	"prompts/get":              `{"messages":[]}`,
	"resources/read":           `{"contents":[]}`,
	"completion/complete":      `{"completion":{"values":[]}}`,
	"tools/list":               `{"tools":[{"name":"secret","inputSchema":{"type":"object"}},{"name":"open","inputSchema":{"type":"object"}},{"name":"s\u0065cret2","inputSchema":{"type":"object"}}],"nextCursor":"more"}`,
	"prompts/list":             `{"prompts":[{"name":"open"},{"name":"secret"}]}`,
	"resources/list":           `{"resources":[{"uri":"file:///secret","name":"open"},{"uri":"file:///open/x","name":"n"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"file:///{secret}","name":"n"},{"uriTemplate":"file:///open/{x}","name":"n"}]}`,
}

// What is denied reaches no server, whichever way it comes and however it is written.
func TestPolicyHoldsAtEveryDoor(t *testing.T) {
	t.Parallel()
	denied := []struct{ name, method, rest string }{
		{"call", "tools/call", `"name":"secret"`},
		{"escaped", "tools/call", `"n\u0061me":"\u0073ecret"`},
		{"prompt", "prompts/get", `"name":"secret"`},
		{"resource", "resources/read", `"uri":"file:///secret"`},
		{"dots", "resources/read", `"uri":"file:///open/../secret"`},
		{"encoded dots", "resources/read", `"uri":"file:///open/%2e%2e/secret"`},
		{"completion", "completion/complete", `"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"a","value":"b"}`},
		{"completion of a resource", "completion/complete", `"ref":{"type":"ref/resource","uri":"file:///secret/{x}"},"argument":{"name":"a","value":"b"}`},
		{"completion under two names", "completion/complete", `"ref":{"type":"ref/prompt","name":"open","Name":"secret"},"argument":{"name":"a","value":"b"}`},
		{"another case", "tools/call", `"name":"open","NAME":"secret"`},
		{"method of nobody", "secret/method", `"name":"open"`},
	}
	for _, peer := range policyPeers {
		for _, d := range doors {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				r, sent := peer.rig(t, guarded(openOnly()))
				ask := d.open(t, r)
				for _, tt := range denied {
					if got := ask(d.request(tt.method, tt.rest)); !strings.Contains(got, "policy of server") {
						t.Errorf("%s: %s, want it refused", tt.name, got)
					}
				}
				if !d.modern {
					if got := ask(d.request("resources/subscribe", `"uri":"file:///secret"`)); !strings.Contains(got, "policy of server") {
						t.Errorf("subscription: %s, want it refused", got)
					}
				}
				if got := ask(d.request("tools/call", `"name":"open"`)); !strings.Contains(got, `"content":[]`) {
					t.Errorf("what is allowed: %s", got)
				}
				if got := sent(); strings.Contains(got, "ecret") || !strings.Contains(got, `"open"`) {
					t.Errorf("the server was sent what is denied:\n%s", got)
				}
			})
		}
	}
}

// Lists have no more than may be used, page by page, and no cache may give one to
// somebody else.
func TestPolicyFiltersLists(t *testing.T) {
	t.Parallel()
	for _, peer := range policyPeers {
		for _, d := range doors {
			t.Run(d.name+" to a "+peer.name, func(t *testing.T) {
				r, _ := peer.rig(t, guarded(openOnly()))
				ask := d.open(t, r)
				for method, want := range map[string]string{
					"tools/list": `"name":"open"`, "prompts/list": `"name":"open"`, "resources/list": "file:///open/x", "resources/templates/list": "file:///open/{x}",
				} {
					got := ask(d.request(method, ""))
					if strings.Contains(got, "secret") || strings.Contains(got, `s\u0065cret2`) || !strings.Contains(got, want) {
						t.Errorf("%s = %s, want %s alone", method, got, want)
					}
					if method == "tools/list" && !strings.Contains(got, `"nextCursor":"more"`) {
						t.Errorf("%s = %s, want its cursor, too", method, got)
					}
					if strings.Contains(got, `"public"`) || d.modern && !strings.Contains(got, `"cacheScope":"private"`) {
						t.Errorf("%s = %s, want it private", method, got)
					}
				}
			})
		}
	}
}

// A client may send as a notification, as a response, or beside its message what it must
// not send as a request: where messages pass as they are, servers may do what it says.
func TestPolicyOfWhatIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, message string }{
		{"notification", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"secret"}}`},
		{"notification of an extension", `{"jsonrpc":"2.0","method":"notifications/secret"}`},
		{"another method beside", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1},"Method":"tools/call","Params":{"name":"secret"}}`},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{},"METHOD":"tools/call","params":{"name":"secret"}}`},
		{"request beside", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"},"pArams":{"name":"secret"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, guarded(openOnly()))
			session := r.enter(t)
			if got := r.send(t, http.MethodPost, tt.message, legacyHeaders(session)); got.status == http.StatusAccepted || strings.Contains(got.body, `"result"`) {
				t.Errorf("%d %s, want it refused", got.status, got.body)
			}
			for _, l := range []*line{r.shaken(t)} {
				l.send(tt.message)
				l.ask(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
			}
			r.peer.mu.Lock()
			defer r.peer.mu.Unlock()
			if got := strings.Join(r.peer.got, "\n"); strings.Contains(got, "secret") {
				t.Errorf("the server was sent:\n%s", got)
			}
		})
	}
}

// An initialize that is passed on has nothing beside it either.
func TestPolicyOfTheHandshake(t *testing.T) {
	t.Parallel()
	r := newRig(t, guarded(openOnly()))
	odd := strings.TrimSuffix(hello, "}") + `,"Method":"tools/call","Params":{"name":"secret"}}`
	if got := r.send(t, http.MethodPost, odd, legacyHeaders("")); got.header.Get("Mcp-Session-Id") != "" || !strings.Contains(got.body, "policy of server") {
		t.Errorf("%d %s, want it refused", got.status, got.body)
	}
	if got := r.peer.sent("initialize"); len(got) != 0 {
		t.Errorf("the server was sent %s", got)
	}
}

// A client to whom nothing is allowed does not even learn what the server is.
func TestPolicyOpensToNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, guarded(policy.New(false, []policy.Rule{{Principals: []string{"root"}}, {Scopes: []string{"mcp:use"}, Tools: []string{"x"}}})))
	for _, got := range []answer{
		r.send(t, http.MethodPost, hello, legacyHeaders("")),
		r.call(t, "1", "server/discover", "", ""),
	} {
		if got.status != http.StatusForbidden || !strings.Contains(got.header.Get("WWW-Authenticate"), `error="insufficient_scope", scope="mcp:use"`) || strings.Contains(got.body, "be kind") {
			t.Errorf("%d %v %s, want 403 with the scope", got.status, got.header, got.body)
		}
	}
	h := legacyHeaders("")
	h.Set("X-User", "root")
	if got := r.send(t, http.MethodPost, hello, h); got.status != http.StatusOK || !strings.Contains(got.body, "be kind") {
		t.Errorf("root: %d %s", got.status, got.body)
	}
}

// The header that routers read says another name than the body: neither is served.
func TestPolicyHeedsNoHeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, guarded(openOnly()))
	for _, header := range []string{"open", "=?base64?b3Blbg==?="} {
		got := r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"secret"`), modernHeaders("tools/call", header))
		if got.status != http.StatusBadRequest {
			t.Errorf("Mcp-Name: %s: %d %s, want 400", header, got.status, got.body)
		}
	}
	for _, header := range []string{"secret", "=?base64?c2VjcmV0?="} {
		got := r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"secret"`), modernHeaders("tools/call", header))
		if !strings.Contains(got.body, "policy of server") {
			t.Errorf("Mcp-Name: %s: %d %s, want it refused", header, got.status, got.body)
		}
	}
	if n := len(r.peer.sent("tools/call")); n != 0 {
		t.Errorf("the server was sent %d calls", n)
	}
}

// A listen stream has what is left of its filter, and says so.
func TestPolicyNarrowsListenStreams(t *testing.T) {
	t.Parallel()
	filter := `{"toolsListChanged":true,"resourceSubscriptions":["file:///open/a","file:///secret"]}`
	t.Run("legacy server", func(t *testing.T) {
		r := newRig(t, guarded(openOnly()))
		f := r.listen(t, "1", filter)
		if ack := f.next(); strings.Contains(ack, "secret") || !strings.Contains(ack, `"resourceSubscriptions":["file:///open/a"]`) {
			t.Errorf("acknowledged %s", ack)
		}
		r.eventually(t, "the server's stream is open", func() bool { return len(r.peer.sent("resources/subscribe")) == 1 })
		if got := strings.Join(r.peer.sent("resources/subscribe"), ""); strings.Contains(got, "secret") {
			t.Errorf("the server was sent %s", got)
		}
	})
	t.Run("modern server", func(t *testing.T) {
		r, p := newModernRigWith(t, nil, guarded(openOnly()))
		f := r.listen(t, "1", filter)
		if ack := f.next(); strings.Contains(ack, "secret") {
			t.Errorf("acknowledged %s", ack)
		}
		if m := <-p.listens; strings.Contains(string(m.Params), "secret") {
			t.Errorf("the server was sent %s", m.Params)
		}
	})
	t.Run("stream of its own", func(t *testing.T) {
		r, p := newModernRigWith(t, nil, guarded(openOnly()))
		f := r.listen(t, "1", `{"taskIds":["t"],"secretKind":["x"],`+filter[1:])
		if ack := f.next(); strings.Contains(ack, "secret") || !strings.Contains(ack, "file:///open/a") || !strings.Contains(ack, "taskIds") {
			t.Errorf("acknowledged %s", ack)
		}
		if m := <-p.listens; strings.Contains(string(m.Params), "secret") {
			t.Errorf("the server was sent %s", m.Params)
		}
	})
}

// A server that tells of a resource unasked does not tell who may not follow it.
func TestPolicyOfUpdates(t *testing.T) {
	t.Parallel()
	r := newRig(t, guarded(openOnly()))
	l := r.connect(t)
	l.ask(hello)
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.eventually(t, "the server's stream is open", func() bool {
		r.peer.mu.Lock()
		defer r.peer.mu.Unlock()
		return len(r.peer.streams) > 0
	})
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications\/resources\/updated","params":{"uri":"file:///secret"}}`)
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///open/a"}}`)
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // and if neither is told
	if got := l.next(); !strings.Contains(got, "file:///open/a") {
		t.Errorf("told %s, want the other update alone", got)
	}
}

// A server that tells of what is below a resource that is followed does not tell who may
// not follow that.
func TestPolicyOfSubresources(t *testing.T) {
	t.Parallel()
	p := policy.New(false, []policy.Rule{{Deny: true, Resources: []string{"*secret*"}}, {Resources: []string{"file:///open*"}}})
	peer := newPeer(t)
	r := newRig(t, func(o *Options) {
		guarded(p)(o)
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: peer.URL, Changes: c, Settings: settings.Server{Subresources: fanout.SubresourcesAsSent},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}
	})
	r.peer = peer
	f := r.listen(t, "1", `{"toolsListChanged":true,"resourceSubscriptions":["file:///open"]}`)
	f.next()
	r.eventually(t, "the server's stream is open", func() bool {
		peer.mu.Lock()
		defer peer.mu.Unlock()
		return len(peer.streams) > 0
	})
	peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///open/secret"}}`)
	peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///open/a"}}`)
	peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // and if neither is told
	if got := f.next(); !strings.Contains(got, "file:///open/a") {
		t.Errorf("told %s, want the other update alone", got)
	}
}

// What a client may follow by the scopes of a later request it hears of.
func TestPolicyHeedsLaterScopes(t *testing.T) {
	t.Parallel()
	p := policy.New(false, []policy.Rule{{Tools: []string{"*"}}, {Scopes: []string{"files"}, Resources: []string{"a:*"}}})
	r := newRig(t, func(o *Options) {
		o.Servers[0].Access = access.Options{Policy: p}
		o.Auth = byScopes{}
	})
	session := r.enter(t)
	r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, legacyHeaders(session))
	h := legacyHeaders(session)
	h.Set("X-Scopes", "files")
	if got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}`, h); got.status != http.StatusOK {
		t.Fatalf("subscribe: %d %s", got.status, got.body)
	}
	res := r.open(t, http.MethodGet, "", legacyHeaders(session))
	defer res.Body.Close()
	f := &frames{t, res, bufio.NewReader(res.Body)}
	r.eventually(t, "the server's stream is open", func() bool {
		r.peer.mu.Lock()
		defer r.peer.mu.Unlock()
		return len(r.peer.streams) > 0
	})
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"c:d"}}`)
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}`)
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // and if neither is told
	for {
		if got := f.next(); got != "" {
			if !strings.Contains(got, `"a:b"`) {
				t.Errorf("told %s, want the update that is allowed", got)
			}
			return
		}
	}
}

// One refusal names all scopes, in both eras, and with them the request succeeds in the
// same session.
func TestPolicyAsksForScopes(t *testing.T) {
	t.Parallel()
	p := policy.New(false, []policy.Rule{{Tools: []string{"open"}}, {Scopes: []string{"files", "write"}, Tools: []string{"secret"}, Resources: []string{"a:*"}}})
	for _, peer := range policyPeers {
		t.Run(peer.name, func(t *testing.T) {
			r, sent := peer.rig(t, func(o *Options) {
				o.Servers[0].Access = access.Options{Policy: p}
				o.Servers[0].PublicURL = "https://mcp.example.com/mcp/peer"
				o.Auth = byScopes{}
			})
			session := r.enter(t)
			for _, tt := range []struct {
				body   string
				header http.Header
			}{
				{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret"}}`, legacyHeaders(session)},
				{`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}`, legacyHeaders(session)},
				{modernBody("1", "tools/call", `"name":"secret"`), modernHeaders("tools/call", "secret")},
			} {
				before := sent()
				got := r.send(t, http.MethodPost, tt.body, tt.header)
				const want = `Bearer error="insufficient_scope", scope="mcp:use files write", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp/peer"`
				if got.status != http.StatusForbidden || got.header.Get("WWW-Authenticate") != want || got.code() == 0 {
					t.Errorf("%s: %d %q %s, want 403 and %s", tt.body, got.status, got.header.Get("WWW-Authenticate"), got.body, want)
				}
				if after := sent(); after != before {
					t.Errorf("the server was sent %s", after[len(before):])
				}
				h := tt.header.Clone()
				h.Set("X-Scopes", "write files")
				if got := r.send(t, http.MethodPost, tt.body, h); got.status != http.StatusOK || !strings.Contains(got.body, `"result"`) {
					t.Errorf("with the scopes: %d %s", got.status, got.body)
				}
			}
		})
	}
}

// byScopes is an Authenticator: whoever sends a request has the scopes that it says.
type byScopes struct{}

func (byScopes) Authenticate(r *http.Request, _ *auth.Endpoint) (*mcp.Identity, error) {
	return &mcp.Identity{Principal: "ada", Scopes: strings.Fields(r.Header.Get("X-Scopes"))}, nil
}

func (byScopes) Metadata(*auth.Endpoint) []byte { return []byte("{}") }
func (byScopes) Scopes() []string               { return []string{"mcp:use"} }

// A request too many is told when to come again, and counted. A legacy client is told in a
// JSON-RPC error, since several SDKs give up the session at a 429; so is a client on a
// connection, which has no status.
func TestF12RatesAreKept(t *testing.T) {
	t.Parallel()
	for _, peer := range policyPeers {
		t.Run(peer.name, func(t *testing.T) {
			counts := &tally{}
			r, _ := peer.rig(t, func(o *Options) {
				o.Metrics = counts
				o.Servers[0].Access = access.Options{Limiter: policy.NewLimiter(policy.Rates{Tools: map[string]policy.Rate{"open": {PerSecond: 0.1}}})}
			})
			session := r.enter(t)
			legacy := func(id int) answer {
				return r.send(t, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"open"}}`, id), legacyHeaders(session))
			}
			began := time.Now()
			if got := legacy(1); got.status != http.StatusOK {
				t.Fatalf("the first: %d %s", got.status, got.body)
			}
			// left returns the seconds that a refusal tells, which are 10 less those that have passed.
			left := func(body string) string {
				for n := 10; n >= 10-int(time.Since(began).Seconds()); n-- {
					if strings.Contains(body, fmt.Sprintf("try again in %d seconds, or raise rate.tools", n)) && strings.Contains(body, fmt.Sprintf(`"data":{"retryAfter":%d}`, n)) {
						return strconv.Itoa(n)
					}
				}
				t.Errorf("%v after the first, refused with %s, want the seconds that are left of 10", time.Since(began), body)
				return ""
			}
			if got := legacy(2); got.status != http.StatusOK || got.header.Get("Retry-After") != "" || got.code() != -32603 || left(got.body) == "" {
				t.Errorf("legacy: %d %v %s", got.status, got.header, got.body)
			}
			if got := r.call(t, "1", "tools/call", "open", `"name":"open"`); got.status != http.StatusTooManyRequests || got.code() != -32603 || got.header.Get("Retry-After") != left(got.body) {
				t.Errorf("modern: %d %v %s", got.status, got.header, got.body)
			}
			left(r.shaken(t).ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"op\u0065n"}}`))
			if n := counts.limits("rate.tools"); n != 3 {
				t.Errorf("counted %d times, want 3", n)
			}
			if got := r.logs.String(); !strings.Contains(got, "outcome=refused") {
				t.Errorf("log = %s, want what was refused", got)
			}
			if got := legacy(3); got.code() != -32603 {
				t.Errorf("after the others: %d %s", got.status, got.body)
			}
			if got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":4,"method":"ping"}`, legacyHeaders(session)); got.status != http.StatusOK {
				t.Errorf("the session: %d %s", got.status, got.body)
			}
		})
	}
}

// Of a batch each message that is too many has an error, and the others are served.
func TestF12RatesInABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Servers[0].Access = access.Options{Limiter: policy.NewLimiter(policy.Rates{Tools: map[string]policy.Rate{"open": {PerSecond: 0.1}}})}
	})
	r.peer.answer("tools/call", say("done"))
	session := r.send(t, http.MethodPost, strings.Replace(hello, "2025-11-25", "2025-03-26", 1), legacyHeaders("")).header.Get("Mcp-Session-Id")
	call := func(id int, tool string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, tool)
	}
	for n, refused := range []int{1, 2} {
		batch := "[" + call(1, "open") + "," + call(2, "open") + "," + call(3, "other") + "]"
		got := r.send(t, http.MethodPost, batch, legacyHeaders(session))
		if got.status != http.StatusOK || got.header.Get("Retry-After") != "" || strings.Count(got.body, `"retryAfter":10`) != refused || strings.Count(got.body, "done") != 3-refused || !strings.Contains(got.body, `"id":3,"result"`) {
			t.Errorf("batch %d = %d %v %s, want 200 with %d errors", n+1, got.status, got.header, got.body, refused)
		}
	}
}

// A call in flight has its place until it ends, whichever way.
func TestConcurrencyIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Servers[0].Access = access.Options{Limiter: policy.NewLimiter(policy.Rates{Principal: policy.Rate{Concurrent: 1}})}
	})
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	session := r.enter(t)
	l := r.shaken(t)
	full := func() bool {
		got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":6,"method":"prompts/list"}`, legacyHeaders(session))
		return strings.Contains(got.body, "rate.principal")
	}
	legacy := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
	cancel := func() { l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`) }
	for n, tt := range []struct {
		call string
		end  func()
	}{
		{legacy, cancel},
		{modernBody("1", "tools/call", `"name":"x"`), cancel},
		{modernBody("1", "tools/call", `"name":"x"`), func() { close(hold); l.next() }},
	} {
		l.send(tt.call)
		r.eventually(t, "the server has the call", func() bool { return len(r.peer.sent("tools/call")) == n+1 })
		if !full() {
			t.Error("beside a call there is room")
		}
		tt.end()
		r.eventually(t, "there is room", func() bool { return !full() })
	}
}
