package router

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil { // tests wait, most of the time
		panic(err)
	}
	os.Exit(bridgetest.Main(m))
}

// A scriptedPeer is a scripted legacy server on loopback. It answers the handshake and
// subscriptions by itself, and other requests with what the test says.
type scriptedPeer struct {
	*httptest.Server
	capabilities string

	mu      sync.Mutex
	answers map[string]string // method -> result JSON, or an error object {"code":…}
	before  map[string][]string
	got     []string // messages received, as they came
	handle  map[string]func(*peerCall) string
	replies map[string]chan wire.Message // by the id of the peer's question
	lastID  int
	deleted int // sessions ended by DELETE

	onInitialized, onRootsChanged func(*scriptedPeer) // run for these notifications, if set

	streams map[chan string]bool
	hold    map[string]chan struct{} // method -> closed when it may be answered
}

const everyCapability = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}`

func newPeer(t *testing.T) *scriptedPeer {
	p := &scriptedPeer{capabilities: everyCapability, answers: map[string]string{}, before: map[string][]string{},
		handle: map[string]func(*peerCall) string{}, replies: map[string]chan wire.Message{},
		streams: map[chan string]bool{}, hold: map[string]chan struct{}{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *scriptedPeer) serve(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		p.serveStream(w, r)
		return
	case http.MethodDelete:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.deleted++
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body, wire.Options{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.got = append(p.got, string(body))
	answer, ok := p.answers[m.Method]
	before, hold, handle := p.before[m.Method], p.hold[m.Method], p.handle[m.Method]
	reply := p.replies[m.ID.String()]
	p.mu.Unlock()
	if m.Kind() != wire.Request {
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		switch {
		case m.Kind() == wire.Response && reply != nil:
			reply <- m
		case m.Method == "notifications/initialized" && p.onInitialized != nil:
			go p.onInitialized(p)
		case m.Method == "notifications/roots/list_changed" && p.onRootsChanged != nil:
			go p.onRootsChanged(p)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if handle != nil {
		p.serveCall(w, r, m, handle)
		return
	}
	if !ok {
		answer = p.usual(&m)
	}
	text := wire.AppendResult(nil, m.ID, []byte(answer), nil)
	if strings.HasPrefix(answer, `{"code":`) {
		text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, answer)
	}
	w.Header().Set("Mcp-Session-Id", "s1")
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if len(before) == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	token := wire.Get(wire.Get(m.Params, "_meta"), "progressToken")
	for _, msg := range before {
		fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(msg, "TOKEN", string(token)))
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: %s\n\n", text)
}

// A peerCall is a request that the peer serves with a function of the test.
type peerCall struct {
	p   *scriptedPeer
	w   http.ResponseWriter
	ctx context.Context
	m   wire.Message
	mu  sync.Mutex
}

// serveCall answers a request with what handle returns: a result, or an error
// object, on a stream on which handle may ask before.
func (p *scriptedPeer) serveCall(w http.ResponseWriter, r *http.Request, m wire.Message, handle func(*peerCall) string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	c := &peerCall{p: p, w: w, ctx: r.Context(), m: m}
	answer := handle(c)
	member := "result"
	if strings.HasPrefix(answer, `{"code":`) {
		member = "error"
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%q:%s}`, m.ID, member, answer))
}

func (c *peerCall) send(msg string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.w, "data: %s\n\n", msg)
	_ = http.NewResponseController(c.w).Flush()
}

// ask puts a question on the call's stream and returns what is posted for it, as
// text: the result, or the error's code and message.
func (c *peerCall) ask(method, params string) string { return c.p.ask(c.ctx, c.send, method, params) }

func (p *scriptedPeer) ask(ctx context.Context, send func(string), method, params string) string {
	p.mu.Lock()
	p.lastID++
	id := fmt.Sprint(p.lastID)
	reply := make(chan wire.Message, 1)
	p.replies[id] = reply
	p.mu.Unlock()
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	select {
	case m := <-reply:
		if m.Error != nil {
			return fmt.Sprintf("error %d %s", m.Error.Code, m.Error.Message)
		}
		return string(m.Result)
	case <-ctx.Done():
		return "gone"
	}
}

func (p *scriptedPeer) usual(m *wire.Message) string {
	if m.Method == "initialize" {
		version, _ := wire.GetString(m.Params, "protocolVersion")
		if spec.Revision(version).Era() != spec.Legacy {
			version = "2025-11-25"
		}
		return `{"protocolVersion":"` + version + `","capabilities":` + p.capabilities + `,"serverInfo":{"name":"peer","version":"7"},"instructions":"be kind"}`
	}
	return `{}`
}

// serveStream keeps a GET stream open and sends what the test pushes.
func (p *scriptedPeer) serveStream(w http.ResponseWriter, r *http.Request) {
	push := make(chan string, 64)
	p.mu.Lock()
	p.streams[push] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.streams, push)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case msg := <-push:
			fmt.Fprintf(w, "data: %s\n\n", msg)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// push sends a message on every open GET stream.
func (p *scriptedPeer) push(msg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ch := range p.streams {
		ch <- msg
	}
}

func (p *scriptedPeer) isListening() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams) > 0
}

func (p *scriptedPeer) answer(method, result string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[method] = result
}

func (p *scriptedPeer) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deleted
}

// sent returns the messages of a method that the peer received.
func (p *scriptedPeer) sent(method string) (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, msg := range p.got {
		if strings.Contains(msg, `"method":"`+method+`"`) {
			out = append(out, msg)
		}
	}
	return out
}

// A rig is a gateway on loopback with one server, reached through the legacy
// back.
type rig struct {
	*httptest.Server
	g      *Gateway
	peer   *scriptedPeer
	modern *modernPeer // of a modern rig
	logs   *bridgetest.Log
}

// bound sets a limit by its key.
func (o *Options) bound(key string, most int) {
	if !slices.ContainsFunc(limits.All(), func(l *limits.Limit) bool { return l.Key == key }) {
		panic("there is no limit " + key)
	}
	if o.Limits == nil {
		o.Limits = make(limits.Set)
	}
	o.Limits[key] = int64(most)
}

func newRig(t *testing.T, change func(*Options)) *rig {
	r := &rig{peer: newPeer(t), logs: &bridgetest.Log{}}
	opts := Options{Logger: slog.New(slog.NewTextHandler(r.logs, nil))}
	opts.Servers = []ServerOptions{{Name: "peer", Open: func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: r.peer.URL, Changes: c, Logger: opts.Logger, Settings: settings.Server{Linger: time.Millisecond},
			ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}}}
	if change != nil {
		change(&opts)
	}
	g, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r.g = g
	r.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.EndStreams()
		r.Server.Close()
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("Close() = %v", err)
		}
		r.peer.CloseClientConnections()
	})
	return r
}

// An answer is what came back for one request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code() int64 {
	var e struct{ Error struct{ Code int64 } }
	text := a.body
	if i := strings.LastIndex(text, "data: {"); i >= 0 { // one that took long is a stream
		text, _, _ = strings.Cut(text[i+len("data: "):], "\n")
	}
	_ = json.Unmarshal([]byte(text), &e)
	return e.Error.Code
}

// send sends a request over a real socket. A header without value is left out.
func (r *rig) send(t *testing.T, method, body string, header http.Header) answer {
	t.Helper()
	return r.sendTo(t, method, "/mcp/peer", body, "", header)
}

// sendTo is send to a path, and by a Host of its own if host is not empty.
func (r *rig) sendTo(t *testing.T, method, path, body, host string, header http.Header) answer {
	t.Helper()
	if host != "" {
		header.Set("Host", host)
	}
	res := r.openAt(t, method, path, body, header)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

func (r *rig) open(t *testing.T, method, body string, header http.Header) *http.Response {
	t.Helper()
	return r.openAt(t, method, "/mcp/peer", body, header)
}

func (r *rig) openAt(t *testing.T, method, path, body string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// modernHeaders returns what a modern client sends beside its body.
func modernHeaders(method, name string) http.Header {
	h := http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {method},
	}
	if name != "" {
		h.Set("Mcp-Name", name)
	}
	return h
}

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"}}`

// modernBody returns a request with a complete envelope. rest are further
// members of params.
func modernBody(id, method, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + envelope + rest + `}}`
}

// call sends a well-formed modern request.
func (r *rig) call(t *testing.T, id, method, name, rest string) answer {
	t.Helper()
	return r.send(t, http.MethodPost, modernBody(id, method, rest), modernHeaders(method, name))
}

// frames reads the events of a stream as they come.
type frames struct {
	t   *testing.T
	res *http.Response
	r   *bufio.Reader
}

func (r *rig) listen(t *testing.T, id, filter string) *frames {
	t.Helper()
	res := r.open(t, http.MethodPost, modernBody(id, "subscriptions/listen", `"notifications":`+filter), modernHeaders("subscriptions/listen", ""))
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("listen = %d %s", res.StatusCode, text)
	}
	return &frames{t, res, bufio.NewReader(res.Body)}
}

// next returns the data of the next event, or "" at the end of the stream.
func (f *frames) next() string {
	f.t.Helper()
	for {
		line, err := f.r.ReadString('\n')
		if err != nil {
			return ""
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// public returns cache hints by which results of methods are public for a minute, and kept.
func public(methods ...string) map[string]settings.CacheHint {
	keep := true
	hints := make(map[string]settings.CacheHint)
	for _, method := range methods {
		hints[method] = settings.CacheHint{TTL: time.Minute, Scope: spec.ScopePublic, Keep: &keep}
	}
	return hints
}
