package router

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A credulousPeer is a modern server on loopback to which all clients are one: whoever
// knows a requestState or a task of it may use it. It grants the resource note://private to
// the first listen stream alone.
type credulousPeer struct {
	*httptest.Server

	mu      sync.Mutex
	asked   map[string]int // requests by method
	streams []chan string  // changes for each listen stream, as they were opened
	opened  []string       // their filters
	owners  []string       // whose they are, as far as that is settled
	states  []string       // requestStates that came
	tasks   int
}

func newCredulousPeer(t *testing.T) *credulousPeer {
	p := &credulousPeer{asked: make(map[string]int)}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *credulousPeer) serve(w http.ResponseWriter, r *http.Request) {
	m, ok := readMessage(w, r)
	if !ok {
		return
	}
	if m.Method == spec.MethodListen {
		p.listen(w, r, m)
		return
	}
	writeAnswer(w, m.ID, p.answer(&m))
}

func (p *credulousPeer) answer(m *wire.Message) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[m.Method]++
	switch m.Method {
	case spec.MethodDiscover:
		return fmt.Sprintf(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"instructions":"for client %d","ttlMs":60000,"cacheScope":"public"}`, p.asked[m.Method])
	case spec.MethodTaskGet, spec.MethodTaskCancel:
		id, _ := wire.GetString(m.Params, "taskId")
		if !strings.HasPrefix(id, "task-") {
			return `{"code":-32602,"message":` + string(wire.Quote("no task "+id)) + `}`
		}
		return `{"resultType":"complete","taskId":` + string(wire.Quote(id)) + `,"status":"working","statusMessage":"secret"}`
	case spec.MethodToolsCall:
		return p.call(m)
	}
	return fmt.Sprintf(`{"resultType":"complete","tools":[{"name":"n%d","inputSchema":{"type":"object"}}],"ttlMs":60000,"cacheScope":"public"}`, p.asked[m.Method])
}

func (p *credulousPeer) call(m *wire.Message) string {
	name, _ := wire.GetString(m.Params, "name")
	state, retried := wire.GetString(m.Params, "requestState")
	switch {
	case name == "task":
		p.tasks++
		return fmt.Sprintf(`{"resultType":"task","taskId":"task-%d","status":"working","ttlMs":null}`, p.tasks)
	case name == "ask" && retried:
		p.states = append(p.states, state)
		return `{"resultType":"complete","content":[{"type":"text","text":` + string(wire.Quote("done for "+state+string(wire.Get(m.Params, "inputResponses")))) + `}]}`
	case name == "ask":
		return fmt.Sprintf(`{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"state-%d"}`, p.asked[m.Method])
	}
	return `{"resultType":"complete","content":[{"type":"text","text":"called"}]}`
}

// listen acknowledges a stream, and carries what the test has for it.
func (p *credulousPeer) listen(w http.ResponseWriter, r *http.Request, m wire.Message) {
	filter := string(wire.Get(m.Params, "notifications"))
	changes := make(chan string, 16)
	p.mu.Lock()
	first := true
	for _, before := range p.opened {
		first = first && !strings.Contains(before, "note://private")
	}
	p.streams, p.opened = append(p.streams, changes), append(p.opened, filter)
	p.mu.Unlock()
	if !first {
		filter = strings.NewReplacer(`"note://private",`, "", `,"note://private"`, "", `"note://private"`, "").Replace(filter)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	meta := fmt.Sprintf(`"_meta":{"%s":%s}`, spec.MetaSubscriptionID, m.ID)
	send := func(method, params string) {
		fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"%s","params":{%s,%s}}`+"\n\n", method, params, meta)
		_ = http.NewResponseController(w).Flush()
	}
	send(spec.NotifyAcknowledged, `"notifications":`+filter)
	for {
		select {
		case uri := <-changes:
			send(spec.NotifyResourceUpdated, `"uri":"`+uri+`"`)
		case <-r.Context().Done():
			return
		}
	}
}

// settled gives the streams that nobody has yet to a client, once it has one.
func (p *credulousPeer) settled(t *testing.T, who string) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		for len(p.owners) < len(p.streams) {
			p.owners = append(p.owners, who)
		}
		enough := slices.Contains(p.owners, who)
		p.mu.Unlock()
		if enough {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s has no stream", who)
		}
	}
}

// change tells of a resource on the streams of a client.
func (p *credulousPeer) change(who, uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, owner := range p.owners {
		if owner == who && strings.Contains(p.opened[i], uri) {
			p.streams[i] <- uri
		}
	}
}

// A world is a gateway before two servers of one era, with static tokens.
type world struct {
	*rig
	t      *testing.T
	era    spec.Era
	legacy *tenantPeer    // nil unless the servers are of that era
	modern *credulousPeer // likewise
	limits *tally
	shared bool                 // upstream all are one
	creds  upstream.Credentials // for both servers; nil for none
}

const other = "other" // the second server

// newWorld returns a world of servers of an era. Each principal has few places.
func newWorld(t *testing.T, era spec.Era, isolation settings.Isolation) *world {
	return newWorldWith(t, era, isolation, func(*Options) {})
}

func newWorldWith(t *testing.T, era spec.Era, isolation settings.Isolation, change func(*Options)) *world {
	return newWorldOf(t, era, isolation, nil, change)
}

// newWorldOf returns a world whose servers are sent credentials.
func newWorldOf(t *testing.T, era spec.Era, isolation settings.Isolation, creds upstream.Credentials, change func(*Options)) *world {
	w := &world{creds: creds, t: t, era: era, limits: &tally{}, shared: isolation == settings.IsolateNothing}
	if era == spec.Legacy {
		w.legacy = newTenantPeer(t)
	} else {
		w.modern = newCredulousPeer(t)
	}
	tokens, err := auth.NewTokens([]auth.StaticToken{{Name: alice, Token: tokenOf(alice)}, {Name: bob, Token: tokenOf(bob)}})
	if err != nil {
		t.Fatal(err)
	}
	w.rig = newRig(t, func(o *Options) {
		o.Auth, o.Metrics = tokens, w.limits
		o.bound("parked_each", 1)
		o.bound("client_sessions_each", 4)
		o.bound("websockets_each", 4)
		o.bound("streams_each", 4)
		o.Servers = []ServerOptions{w.server("peer", o, isolation), w.server(other, o, isolation)}
		change(o)
	})
	t.Cleanup(func() {
		if w.legacy != nil {
			w.legacy.CloseClientConnections()
		}
	})
	return w
}

func (w *world) server(name string, o *Options, isolation settings.Isolation) ServerOptions {
	return ServerOptions{Name: name, Settings: settings.Server{Isolation: isolation, Cache: public("tools/list", "resources/read")}, Open: func(c mcp.Changes) (mcp.Back, error) {
		up := upstream.Options{Name: name, Credentials: w.creds, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond}, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}
		if w.modern != nil {
			up.URL = w.modern.URL
			return modernback.New(modernback.Options{Options: up})
		}
		up.URL = w.legacy.URL
		up.Settings.Cache = public("tools/list")
		return legacyback.New(legacyback.Options{Options: up})
	}}
}

func tokenOf(who string) string { return "token-of-" + who + "-0123456789" }

// A tenant is a client of a principal, of an era.
type tenant struct {
	w       *world
	t       *testing.T
	who     string
	era     spec.Era
	session string // of a legacy one
	path    string
	ids     int
}

// client returns a client of a principal; a legacy one has opened a session.
func (w *world) client(who string, era spec.Era) *tenant { return w.clientOf(who, era, "peer") }

func (w *world) clientOf(who string, era spec.Era, server string) *tenant {
	w.t.Helper()
	c := &tenant{w: w, t: w.t, who: who, era: era, path: "/mcp/" + server}
	if era == spec.Legacy {
		got := w.sendTo(w.t, http.MethodPost, c.path, strings.Replace(hello, `"capabilities":{}`, `"capabilities":`+withTasksAndQuestions, 1), "", c.headers("", ""))
		if c.session = got.header.Get("Mcp-Session-Id"); c.session == "" {
			w.t.Fatalf("initialize of %s = %d %s", who, got.status, got.body)
		}
		c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.settle() // it follows lists
	}
	return c
}

const withTasksAndQuestions = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func (c *tenant) headers(method, name string) http.Header {
	h := legacyHeaders(c.session)
	if c.era == spec.Modern {
		h = modernHeaders(method, name)
	}
	h.Set("Authorization", "Bearer "+tokenOf(c.who))
	return h
}

// post sends a message of a legacy client.
func (c *tenant) post(text string) answer {
	c.t.Helper()
	return c.w.sendTo(c.t, http.MethodPost, c.path, text, "", c.headers("", ""))
}

func (c *tenant) body(method, rest string) string {
	c.ids++
	if c.era == spec.Modern {
		return askableBody(fmt.Sprint(c.ids), method, withTasksAndQuestions, rest)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, c.ids, method, rest)
}

// ask sends a request, and returns its answer.
func (c *tenant) ask(method, name, rest string) answer {
	c.t.Helper()
	return c.w.sendTo(c.t, http.MethodPost, c.path, c.body(method, rest), "", c.headers(method, name))
}

func (c *tenant) tool(name, rest string) answer {
	c.t.Helper()
	return c.ask("tools/call", name, `"name":"`+name+`"`+rest)
}

// settle waits for the listen streams that a client's request has opened at the server.
func (c *tenant) settle() {
	c.t.Helper()
	if c.w.modern != nil && !c.w.shared {
		c.w.modern.settled(c.t, c.who)
	}
}

// follow subscribes to a resource and to note://todo, and returns what tells of them.
func (c *tenant) follow(uri string) *lines {
	c.t.Helper()
	if c.era == spec.Modern {
		l := newLines(c.t, c.w.openAt(c.t, http.MethodPost, c.path, c.body("subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://todo","`+uri+`"]}`), c.headers("subscriptions/listen", "")))
		l.want("acknowledged")
		c.settle()
		return l
	}
	l := newLines(c.t, c.w.openAt(c.t, http.MethodGet, c.path, "", c.headers("", "")))
	c.subscribe("note://todo")
	c.subscribe(uri)
	return l
}

func (c *tenant) subscribe(uri string) {
	c.t.Helper()
	if got := c.ask("resources/subscribe", "", `"uri":"`+uri+`"`); got.code() != 0 {
		c.t.Fatalf("resources/subscribe of %s = %s", c.who, got.body)
	}
	c.settle()
}

// change has the server tell of a resource, on what is a client's own.
func (c *tenant) change(uri string) {
	c.t.Helper()
	if c.w.modern != nil {
		c.w.modern.change(c.who, uri)
		return
	}
	c.upstreamSession().stream <- updated(uri)
}

// upstreamSession returns the session of a legacy server that a client's calls reach.
func (c *tenant) upstreamSession() *tenantSession {
	c.t.Helper()
	got := c.tool("whoami", "")
	c.w.legacy.mu.Lock()
	defer c.w.legacy.mu.Unlock()
	for name, s := range c.w.legacy.sessions {
		if strings.Contains(got.body, `"`+name+`"`) {
			return s
		}
	}
	c.t.Fatalf("whoami of %s = %s", c.who, got.body)
	return nil
}

// same wants two answers to be one to the byte, but for ids that the client gave.
func (w *world) same(what string, got, want answer) {
	w.t.Helper()
	if got.status != want.status || got.body != want.body {
		w.t.Errorf("%s = %d %s\nwant what is said of an unknown one: %d %s", what, got.status, got.body, want.status, want.body)
	}
}
