package legacy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A theatre is a front over a real socket, and what stands behind it: an upstream
// scripted by the test.
type theatre struct {
	*httptest.Server
	front *Front

	mu       sync.Mutex
	handle   func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error)
	describe func() (*exchange.Description, error)
	refused  map[string]bool // URIs
	away     int             // so many times, the upstream can't be reached
	members  []*place
	got      []*exchange.Request
	who      exchange.Principal
	dropped  map[string]int
}

// A place is a session's membership.
type place struct {
	st     *theatre
	mail   *fanout.Mailbox
	mu     sync.Mutex
	held   map[string]bool
	lists  exchange.Filter
	closed bool
}

func (p *place) Add(_ context.Context, want exchange.Filter) (exchange.Filter, error) {
	p.st.mu.Lock()
	away := p.st.away > 0
	p.st.away--
	p.st.mu.Unlock()
	if away {
		return exchange.Filter{}, errors.New("nobody there")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	honored := want
	honored.URIs = nil
	for _, uri := range want.URIs {
		if !p.st.refused[uri] {
			honored.URIs = append(honored.URIs, uri)
			p.held[uri] = true
		}
	}
	if len(want.URIs) == 0 {
		p.lists = want
	}
	return honored, nil
}

func (p *place) Remove(uris ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uri := range uris {
		delete(p.held, uri)
	}
}

func (p *place) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

const allOffered = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}`

func newTheatre(t *testing.T, change func(*FrontOptions)) *theatre {
	st := &theatre{who: "ada", refused: map[string]bool{}, dropped: map[string]int{}}
	st.describe = func() (*exchange.Description, error) {
		return &exchange.Description{Capabilities: []byte(allOffered), ServerInfo: []byte(`{"name":"up","version":"7"}`)}, nil
	}
	o := FrontOptions{Name: "docs", Handler: st, Describer: st, Roster: st, Instance: "inst", Metrics: st,
		Admit: func(r *exchange.Request) error { r.Profile.Scope = "docs/" + r.Session; return nil }}
	if change != nil {
		change(&o)
	}
	f, err := NewFront(o)
	if err != nil {
		t.Fatal(err)
	}
	st.front = f
	st.Server = httptest.NewServer(http.HandlerFunc(st.serveHTTP))
	t.Cleanup(func() {
		f.EndStreams()
		st.CloseClientConnections()
		st.Server.Close()
		if err := f.Close(context.Background()); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return st
}

// serveHTTP does what stands before a front.
func (st *theatre) serveHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		st.front.ServeGet(w, r, st.principal())
		return
	case http.MethodDelete:
		st.front.ServeDelete(w, r, st.principal())
		return
	}
	body, _ := io.ReadAll(r.Body)
	if wire.IsArray(body) {
		st.front.ServePost(w, r, body, nil, st.principal())
		return
	}
	m, err := wire.Parse(body, wire.Options{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	st.front.ServePost(w, r, body, &m, st.principal())
}

func (st *theatre) principal() exchange.Principal {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.who
}

func (st *theatre) Serve(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error) {
	st.mu.Lock()
	st.got = append(st.got, req)
	handle := st.handle
	st.mu.Unlock()
	if handle == nil {
		return nil, errors.New("nothing is served")
	}
	text, err := handle(ctx, req, x)
	if err != nil {
		return nil, err
	}
	res := exchange.NewResult([]byte(text), nil)
	res.Era = spec.Modern
	return res, nil
}

func (st *theatre) Describe(context.Context, *exchange.Request) (*exchange.Description, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.describe()
}

func (st *theatre) Join(_ *exchange.Request, mail *fanout.Mailbox) (exchange.Membership, error) {
	p := &place{st: st, mail: mail, held: map[string]bool{}}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.members = append(st.members, p)
	return p, nil
}

func (st *theatre) Dropped(reason string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.dropped[reason]++
}
func (st *theatre) Limit(name string) { st.Dropped("limit " + name) }
func (st *theatre) Delivered(int)     {}
func (st *theatre) Sessions(int)      {}

func (st *theatre) drops(reason string) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.dropped[reason]
}

// A guest is a client of the theatre.
type guest struct {
	st       *theatre
	id       string // of the session
	revision string
	calls    int
}

// reply is what came back for one HTTP request, its body read to the end.
type httpReply struct {
	status int
	header http.Header
	body   string
}

func (r httpReply) code() int64 {
	var e struct{ Error struct{ Code int64 } }
	_ = json.Unmarshal([]byte(r.body), &e)
	return e.Error.Code
}

// open sends one HTTP request; headers are name, value pairs, an empty value
// removes.
func (st *theatre) open(t testing.TB, method, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, st.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	res, err := st.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (st *theatre) send(t testing.TB, method, body string, headers ...string) httpReply {
	t.Helper()
	res := st.open(t, method, body, headers...)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return httpReply{res.StatusCode, res.Header, string(text)}
}

func (st *theatre) enter(t testing.TB, revision string) *guest {
	t.Helper()
	r := st.send(t, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{},"sampling":{},"roots":{"listChanged":true}},"clientInfo":{"name":"t","version":"0"}}}`, revision))
	if r.status != 200 || r.header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize = %d %s", r.status, r.body)
	}
	g := &guest{st: st, id: r.header.Get("Mcp-Session-Id"), revision: revision}
	if r := g.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.status != 202 || r.body != "" {
		t.Fatalf("initialized = %d %q, want 202 and nothing", r.status, r.body)
	}
	return g
}

func (g *guest) post(t testing.TB, body string) httpReply {
	t.Helper()
	return g.st.send(t, "POST", body, "Mcp-Session-Id", g.id)
}

func (g *guest) call(t testing.TB, method, params string) httpReply {
	t.Helper()
	g.calls++
	return g.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, g.calls, method, params))
}

// A feedReader reads a stream event by event.
type feedReader struct {
	t    testing.TB
	res  *http.Response
	in   *bufio.Scanner
	last string // the last event's id
}

func read(t testing.TB, res *http.Response) *feedReader {
	t.Helper()
	if typ := res.Header.Get("Content-Type"); typ != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("Content-Type = %q, want a stream; %d %s", typ, res.StatusCode, body)
	}
	return &feedReader{t: t, res: res, in: bufio.NewScanner(res.Body)}
}

// next returns the data of the next event that has some; ok is false at the end.
func (f *feedReader) next() (data string, ok bool) {
	for f.in.Scan() {
		line := f.in.Text()
		if id, found := strings.CutPrefix(line, "id: "); found {
			f.last = id
		}
		if d, found := strings.CutPrefix(line, "data: "); found && d != "" {
			return d, true
		}
	}
	return "", false
}

func (f *feedReader) want(want string) {
	f.t.Helper()
	if got, ok := f.next(); !ok || got != want {
		f.t.Errorf("event = %q, %v\nwant    %q", got, ok, want)
	}
}

func (f *feedReader) ends() {
	f.t.Helper()
	if got, ok := f.next(); ok {
		f.t.Errorf("event = %s, want the end", got)
	}
	f.res.Body.Close()
}
