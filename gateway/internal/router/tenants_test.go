package router

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// A tenantPeer is a legacy server on loopback whose sessions can be told apart:
// whatever it shows bears the session's name. Its ids are the same in all.
type tenantPeer struct {
	*httptest.Server

	mu       sync.Mutex
	sessions map[string]*tenantSession // by name, which is the Mcp-Session-Id
	asked    map[string]int            // requests by method
	tasks    int
}

type tenantSession struct {
	name     string
	stream   chan string     // what the GET stream is to carry
	replies  chan string     // results the client posted
	works    chan tenantWork // calls of the tool work
	left     chan string     // notifications/cancelled and resources/unsubscribe, as they came
	levelled chan string     // logging/setLevel, as it came
}

// A tenantWork is a call that the server is at.
type tenantWork struct {
	id, token string
	finish    chan struct{}
}

func newTenantPeer(t *testing.T) *tenantPeer {
	p := &tenantPeer{sessions: make(map[string]*tenantSession), asked: make(map[string]int)}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *tenantPeer) open() *tenantSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &tenantSession{
		name:    fmt.Sprintf("s%d", len(p.sessions)+1),
		stream:  make(chan string, 16),
		replies: make(chan string, 16),
		works:   make(chan tenantWork, 16),
		left:    make(chan string, 16), levelled: make(chan string, 16),
	}
	p.sessions[s.name] = s
	return s
}

func (p *tenantPeer) count(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[method]
}

func (p *tenantPeer) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	s := p.sessions[r.Header.Get("Mcp-Session-Id")]
	p.mu.Unlock()
	if r.Method == http.MethodGet {
		s.serveStream(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body, wire.Options{})
	switch {
	case r.Method != http.MethodPost || err != nil:
		return
	case m.Kind() == wire.Response:
		s.replies <- string(m.Result)
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Kind() != wire.Request:
		if m.Method == "notifications/cancelled" {
			s.left <- string(body)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.mu.Lock()
	p.asked[m.Method]++
	p.mu.Unlock()
	if m.Method == "initialize" {
		s = p.open()
	}
	w.Header().Set("Mcp-Session-Id", s.name)
	if m.Method == "tools/call" && wire.Get(m.Params, "task") == nil {
		s.serveCall(w, r, m)
		return
	}
	answer := p.aboutTasks(&m)
	if answer == "" {
		answer = s.answer(m, body)
	}
	writeAnswer(w, m.ID, answer)
}

// aboutTasks answers what is about the tasks of 2025-11-25, which are those of all sessions:
// all have one credential.
func (p *tenantPeer) aboutTasks(m *wire.Message) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, _ := wire.GetString(m.Params, "taskId")
	switch {
	case m.Method == "tools/call":
		p.tasks++
		return fmt.Sprintf(`{"task":{"taskId":"task-%d","status":"working"}}`, p.tasks)
	case m.Method == "tasks/list":
		var all []string
		for n := range p.tasks {
			all = append(all, fmt.Sprintf(`{"taskId":"task-%d","status":"working"}`, n+1))
		}
		return `{"tasks":[` + strings.Join(all, ",") + `],"nextCursor":"c"}`
	case !strings.HasPrefix(m.Method, "tasks/"):
		return ""
	case !strings.HasPrefix(id, "task-"):
		return `{"code":-32602,"message":` + string(wire.Quote("no task "+id)) + `}`
	}
	return `{"taskId":` + string(wire.Quote(id)) + `,"status":"working","statusMessage":"secret"}`
}

func (s *tenantSession) answer(m wire.Message, body []byte) string {
	switch m.Method {
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":` + everyCapability + `,"serverInfo":{"name":"peer","version":"7"},"instructions":"for ` + s.name + `"}`
	case "tools/list":
		return toolNamed(s.name)
	case "resources/read":
		return `{"contents":[{"uri":"note://todo","text":"` + s.name + `"}]}`
	case "resources/unsubscribe":
		s.left <- string(body)
	case "logging/setLevel":
		s.levelled <- string(body)
	}
	return `{}`
}

// serveCall serves whoami, which returns the session's name; ask and ask twice, which
// return the answers to questions of the method in their arguments; and work, which tells
// of progress and ends when the test says.
func (s *tenantSession) serveCall(w http.ResponseWriter, r *http.Request, m wire.Message) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	send := func(msg string) {
		fmt.Fprintf(w, "data: %s\n\n", msg)
		_ = http.NewResponseController(w).Flush()
	}
	text := s.name
	switch name, _ := wire.GetString(m.Params, "name"); name {
	case "ask", "ask twice":
		method, _ := wire.GetString(wire.Get(m.Params, "arguments"), "method")
		text = ""
		for id := range strings.Count(name, " ") + 1 {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"message":"for %s"}}`, id+1, method, s.name))
			select {
			case reply := <-s.replies:
				text += reply
			case <-r.Context().Done():
				return
			}
		}
	case "work":
		job := tenantWork{m.ID.String(), string(wire.Get(wire.Get(m.Params, "_meta"), "progressToken")), make(chan struct{})}
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + job.token + `}}`)
		s.works <- job
		select {
		case <-job.finish:
		case <-r.Context().Done():
			return
		}
	}
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, say(text)))
}

func (s *tenantSession) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case msg := <-s.stream:
			fmt.Fprintf(w, "data: %s\n\n", msg)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

const (
	alice, bob = "alice", "bob"
	whoHeader  = "Test-Principal"
	// patience bounds what must come; what must not come is looked for after
	// something that was sent later.
	patience = 30 * time.Second
)

// tenants is a gateway with one server, and two principals before it.
type tenants struct {
	*rig
	t            *testing.T
	server       *tenantPeer
	capabilities string // of both clients
}

// newTenants returns a gateway that keeps what its hints allow: lists are public,
// what is read is private.
func newTenants(t *testing.T, isolation settings.Isolation) *tenants {
	return newTenantsAt(t, isolation, "peer")
}

// newGroupTenants is newTenants for clients of a group that has the server.
func newGroupTenants(t *testing.T) *tenants {
	return newTenantsAt(t, settings.IsolatePrincipal, "inner", ServerOptions{Name: "peer", Group: func() *group.Options {
		o := groupOf("inner")
		o.Bare = true
		return o
	}()})
}

// newTenantsAt returns a gateway with a server of a name, and others.
func newTenantsAt(t *testing.T, isolation settings.Isolation, name string, others ...ServerOptions) *tenants {
	w := &tenants{t: t, server: newTenantPeer(t), capabilities: `{"elicitation":{}}`}
	w.rig = newRig(t, func(o *Options) {
		o.bound("parked_each", 1)
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get(whoHeader)), nil })
		o.Servers = append([]ServerOptions{{Name: name, Settings: settings.Server{Isolation: isolation, Cache: public("tools/list", "resources/read")}, Open: func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: name, URL: w.server.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond, Cache: map[string]settings.CacheHint{"tools/list": public("tools/list")["tools/list"], "resources/read": {TTL: time.Minute}}},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}, others...)
	})
	t.Cleanup(w.server.CloseClientConnections)
	return w
}

// by sends a request of a principal, always under the id 1.
func (w *tenants) by(who, method, name, rest string) *http.Response {
	w.t.Helper()
	h := modernHeaders(method, name)
	h.Set(whoHeader, who)
	return w.open(w.t, http.MethodPost, askableBody("1", method, w.capabilities, rest), h)
}

// ask sends a request of a principal and returns its answer.
func (w *tenants) ask(who, method, name, rest string) answer {
	w.t.Helper()
	res := w.by(who, method, name, rest)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s of %s: %v", method, who, err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// session returns the session that a principal's calls reach.
func (w *tenants) session(who string) *tenantSession {
	w.t.Helper()
	got := w.ask(who, "tools/call", "whoami", `"name":"whoami"`)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for name, s := range w.server.sessions {
		if strings.Contains(got.body, `"`+name+`"`) {
			return s
		}
	}
	w.t.Fatalf("whoami of %s = %s", who, got.body)
	return nil
}

// work starts a call of a principal, under an id and a progress token that all
// share, and returns when the server is at it.
func (w *tenants) work(who string) (*lines, tenantWork) {
	w.t.Helper()
	body := askableBody("1", "tools/call", w.capabilities, `"name":"work"`)
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":"same","io.modelcontextprotocol/logLevel":"debug",`, 1)
	s := w.session(who)
	h := modernHeaders("tools/call", "work")
	h.Set(whoHeader, who)
	opened := make(chan *http.Response, 1)
	go func() { opened <- w.open(w.t, http.MethodPost, body, h) }() // the response begins with its first message
	job := soon(w.t, s.works, "the call of "+who)
	return newLines(w.t, soon(w.t, opened, "the response to "+who)), job
}

// subscribe opens a listen stream of a principal and returns it acknowledged.
func (w *tenants) subscribe(who string) *lines {
	w.t.Helper()
	l := newLines(w.t, w.by(who, "subscriptions/listen", "", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://todo"]}`))
	l.want("note://todo")
	return l
}

// lines are the messages of a response as they come.
type lines struct {
	t    *testing.T
	res  *http.Response
	data chan string // closed at the end
	seen []string
	last string // the id of the last event; read only after data is closed
}

func newLines(t *testing.T, res *http.Response) *lines {
	l := &lines{t: t, res: res, data: make(chan string, 64)}
	t.Cleanup(func() { res.Body.Close() })
	go l.read() // ends with the response
	return l
}

func (l *lines) read() {
	defer close(l.data)
	for r := bufio.NewReader(l.res.Body); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			l.last = strings.TrimSpace(id)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			l.data <- data
		}
	}
}

// want waits for a message with a text in it.
func (l *lines) want(text string) {
	l.t.Helper()
	late := time.After(patience)
	for {
		select {
		case data, ok := <-l.data:
			if !ok {
				l.t.Fatalf("the response ended with %q, want %s", l.seen, text)
			}
			l.seen = append(l.seen, data)
			if strings.Contains(data, text) {
				return
			}
		case <-late:
			l.t.Fatalf("the response has %q, want %s", l.seen, text)
		}
	}
}

// wantEnd reads the rest of the messages.
func (l *lines) wantEnd() {
	l.t.Helper()
	late := time.After(patience)
	for {
		select {
		case data, ok := <-l.data:
			if !ok {
				return
			}
			l.seen = append(l.seen, data)
		case <-late:
			l.t.Fatalf("the response has not ended; it has %q", l.seen)
		}
	}
}

// wantNone wants no message so far to have a text in it.
func (l *lines) wantNone(text string) {
	l.t.Helper()
	for _, data := range l.seen {
		if strings.Contains(data, text) {
			l.t.Errorf("a message of another principal came: %s", data)
		}
	}
}

func soon[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}
