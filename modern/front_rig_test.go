package modern

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A script is what stands behind a front in these tests: it serves as the test says,
// and grants every filter.
type script struct {
	serve    func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error)
	describe func()
	listened chan *fanout.Mailbox // receives the mailbox of each stream
}

func (s *script) Serve(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error) {
	return s.serve(ctx, req, x)
}

func (s *script) Describe(ctx context.Context, _ *exchange.Request) (*exchange.Description, error) {
	if s.describe != nil && ctx.Err() == nil {
		s.describe()
	}
	return &exchange.Description{Capabilities: []byte("{}"), ServerInfo: []byte(`{"name":"s","version":"1"}`)}, nil
}

func (s *script) Listen(_ context.Context, _ *exchange.Request, want exchange.Filter, mail *fanout.Mailbox) (exchange.Filter, func(), error) {
	s.listened <- mail
	return want, func() {}, nil
}

// newScript returns a script that answers each call with the name it calls.
func newScript() *script {
	return &script{listened: make(chan *fanout.Mailbox, 16), serve: func(_ context.Context, req *exchange.Request, _ exchange.Exchange) (*exchange.Result, error) {
		name, _ := wire.GetString(req.Params, "name")
		return exchange.NewResult(fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, name), nil), nil
	}}
}

func (s *script) front(t *testing.T, change func(*FrontOptions)) *Front {
	t.Helper()
	o := FrontOptions{Name: "s", Handler: s, Describer: s, Feed: s, Gather: time.Millisecond, Admit: func(req *exchange.Request) error {
		req.Profile = exchange.Profile{Scope: "s/0"}
		return nil
	}}
	if change != nil {
		change(&o)
	}
	f, err := NewFront(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// A line is a pipe with its client, who reads what is sent from a channel.
type line struct {
	*Pipe
	t    *testing.T
	sent chan string

	mu   sync.Mutex    // guards the fields below
	part string        // what messages have in them that wait
	free chan struct{} // closed when they may be sent; nil if none wait
}

func (s *script) line(t *testing.T, f *Front) *line {
	l := &line{t: t, sent: make(chan string, 100)}
	l.Pipe = f.OpenPipe(func(msg []byte) error {
		l.mu.Lock()
		free := l.free
		waits := free != nil && strings.Contains(string(msg), l.part)
		l.mu.Unlock()
		if waits {
			<-free
		}
		l.sent <- string(msg)
		return nil
	}, exchange.Share{Principal: "ada"})
	t.Cleanup(l.Close)
	return l
}

const clientMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":CAPS}`

// hold keeps messages that have part in them from being sent until release.
func (l *line) hold(part string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part, l.free = part, make(chan struct{})
	return func() { close(l.free) }
}

// request returns a request with a complete envelope. rest are further members of
// params, and begin with a comma.
func request(id, method, capabilities, rest string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` +
		strings.Replace(clientMeta, "CAPS", capabilities, 1) + rest + `}}`
}

func (l *line) serve(text string) {
	l.t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{UniqueParams: true})
	if err != nil {
		l.t.Fatalf("Parse(%s) = %v", text, err)
	}
	l.Serve(&m)
}

func (l *line) call(id, name string) {
	l.t.Helper()
	l.serve(request(id, "tools/call", "{}", `,"name":"`+name+`"`))
}

func (l *line) listen(id string) {
	l.t.Helper()
	l.serve(request(id, "subscriptions/listen", "{}", `,"notifications":{"toolsListChanged":true}`))
}

func (l *line) cancel(id string) {
	l.t.Helper()
	l.serve(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
}

// next returns the next message that the client reads.
func (l *line) next() string {
	l.t.Helper()
	select {
	case msg := <-l.sent:
		return msg
	case <-time.After(10 * time.Second):
		l.t.Fatal("nothing was sent for 10s")
		return ""
	}
}

// want reads the next message, and wants every part in it.
func (l *line) want(parts ...string) string {
	l.t.Helper()
	msg := l.next()
	for _, part := range parts {
		if !strings.Contains(msg, part) {
			l.t.Errorf("sent = %s, want %s in it", msg, part)
		}
	}
	return msg
}

// silent fails if anything was sent. It is for synctest bubbles at rest.
func (l *line) silent() {
	l.t.Helper()
	select {
	case msg := <-l.sent:
		l.t.Errorf("sent = %s, want nothing", msg)
	default:
	}
}

// toolsChanged tells a stream that the tools have changed.
func toolsChanged(mail *fanout.Mailbox) {
	mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s/0", Kind: fanout.ToolsListChanged}})
}

// overHTTP has a message served over HTTP, as its client would send it.
func overHTTP(t *testing.T, f *Front, text string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	return overHTTPWith(t, f, text, func(h http.Header) {
		for name, value := range header {
			h.Set(name, value)
		}
	})
}

// overHTTPWith has a message served over HTTP with other headers.
func overHTTPWith(t *testing.T, f *Front, text string, change func(http.Header)) *httptest.ResponseRecorder {
	t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{UniqueParams: true})
	if err != nil {
		t.Fatalf("Parse(%s) = %v", text, err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp/s", nil)
	r.Header.Set(spec.HeaderProtocolVersion, string(spec.Rev20260728))
	r.Header.Set(spec.HeaderMethod, m.Method)
	if name, ok := wire.GetString(m.Params, spec.Named(m.Method)); ok {
		r.Header.Set(spec.HeaderName, name)
	}
	change(r.Header)
	w := httptest.NewRecorder()
	f.ServeMessage(w, r, &m, exchange.Share{Principal: "ada"})
	return w
}
