package back

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An asker is a legacy server over a connection, played by a test: it runs calls
// side by side, and each may ask.
type asker struct {
	t    testing.TB
	conn transport.Conn

	capabilities string                                 // everything if empty
	call         func(c *askerCall) string              // serves tools/call; returns the result, or an error object {"code":…}
	on           map[string]func(m wire.Message) string // serves other requests
	heard        func(m wire.Message)                   // notifications, in order; may be nil

	mu      sync.Mutex
	lastID  int
	over    bool   // the back has gone
	told    string // the capabilities in initialize
	replies map[string]chan wire.Message
	calls   map[string]*askerCall // by id
	running sync.WaitGroup
}

// An askerCall is a tools/call at the server.
type askerCall struct {
	*asker
	m         wire.Message
	cancelled chan struct{} // closed by notifications/cancelled
	ended     chan struct{} // closed when it was answered
}

// who is the argument by which tests tell calls apart.
func (c *askerCall) who() string {
	who, _ := wire.GetString(wire.Get(c.m.Params, "arguments"), "who")
	return who
}

// newAsker returns a Back whose every connection leads to a server that a shares
// with the others: start says how to play it.
func newAsker(t testing.TB, opts Options, start func(a *asker)) *Back {
	var running sync.WaitGroup
	t.Cleanup(running.Wait) // after the Back is closed
	opts.Dial = func(context.Context) (transport.Conn, error) {
		near, far := transport.NewPipe()
		a := &asker{t: t, conn: far, replies: make(map[string]chan wire.Message), calls: make(map[string]*askerCall)}
		start(a)
		running.Go(a.serve)
		return near, nil
	}
	return newTestBack(t, opts)
}

func (a *asker) serve() {
	defer a.running.Wait()
	defer a.hangUp()
	for {
		text, err := a.conn.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(text, wire.Options{})
		if err != nil {
			a.t.Errorf("the back wrote %s: %v", text, err)
			continue
		}
		a.take(m)
	}
}

func (a *asker) take(m wire.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case m.Kind() == wire.Response:
		if reply := a.replies[m.ID.String()]; reply != nil {
			reply <- m
		}
	case m.Kind() == wire.Notification:
		id := string(wire.Get(m.Params, "requestId"))
		if c := a.calls[id]; m.Method == "notifications/cancelled" && c != nil {
			close(c.cancelled)
			delete(a.calls, id)
		}
		if a.heard != nil {
			a.heard(m)
		}
	case m.Method == "initialize":
		a.told = string(wire.Get(m.Params, "capabilities"))
		capabilities := a.capabilities
		if capabilities == "" {
			capabilities = legacytest.Everything
		}
		a.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, legacytest.InitializeResult("2025-11-25", capabilities))
	case m.Method == "tools/call":
		c := &askerCall{asker: a, m: m, cancelled: make(chan struct{}), ended: make(chan struct{})}
		a.calls[m.ID.String()] = c
		a.running.Go(c.run)
	case a.on[m.Method] != nil:
		a.running.Go(func() { a.answer(m.ID, a.on[m.Method](m)) })
	default:
		a.answer(m.ID, `{}`)
	}
}

func (c *askerCall) run() {
	defer close(c.ended)
	result := c.asker.call(c)
	c.mu.Lock()
	delete(c.calls, c.m.ID.String())
	c.mu.Unlock()
	select {
	case <-c.cancelled: // nobody waits
	default:
		c.answer(c.m.ID, result)
	}
}

func (a *asker) answer(id wire.ID, result string) {
	member := "result"
	if wire.Get([]byte(result), "code") != nil {
		member = "error"
	}
	a.send(`{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, result)
}

// send writes a message; the Back may have gone.
func (a *asker) send(format string, args ...any) { _ = a.conn.Write(fmt.Appendf(nil, format, args...)) }

// hangUp answers all that is open: nobody else will.
func (a *asker) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, c := range a.calls {
		close(c.cancelled)
	}
	for _, reply := range a.replies {
		select {
		case reply <- wire.Message{Error: wire.Errorf(0, "gone")}:
		default: // it was answered
		}
	}
	clear(a.calls)
}

// pose sends a question and returns its id and where its answer comes.
func (a *asker) pose(method, params string) (int, <-chan wire.Message) {
	a.mu.Lock()
	a.lastID++
	id := a.lastID
	reply := make(chan wire.Message, 2)
	a.replies[fmt.Sprint(id)] = reply
	over := a.over
	a.mu.Unlock()
	if over {
		reply <- wire.Message{Error: wire.Errorf(0, "gone")}
		return id, reply
	}
	a.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	return id, reply
}

// ask puts a question and waits for the answer.
func (a *asker) ask(method, params string) wire.Message {
	_, reply := a.pose(method, params)
	return <-reply
}

// elicit asks who the user is, on behalf of a call, and returns the answer.
func (c *askerCall) elicit() wire.Message {
	return c.ask("elicitation/create", fmt.Sprintf(`{"message":%q}`, c.who()))
}

// A client is the caller of one call: it answers questions.
type client struct {
	caller
	ask func(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error)
}

func (c *client) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	var out []mcp.InputResponse
	for _, q := range qs {
		a, err := c.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// never is the ask of a client that does not answer.
func never(ctx context.Context, _ mcp.InputRequest) (mcp.InputResponse, error) {
	<-ctx.Done()
	return mcp.InputResponse{}, context.Cause(ctx)
}

// says is the ask of a client that answers what it has for the method.
func says(answers map[string]string) func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
	return func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
		return mcp.InputResponse{Result: json.RawMessage(answers[q.Method])}, nil
	}
}

const (
	canBeAsked = `{"elicitation":{},"sampling":{}}`
	hasRoots   = `{"elicitation":{},"roots":{},"sampling":{}}`
	accepted   = `{"action":"accept","content":{"me":"Ada"}}`
	adasRoots  = `{"roots":[{"uri":"file:///ada"}]}`
)

// askable returns a call of a client that can be asked.
func askable(who string) *mcp.Request {
	r := ask("tools/call", fmt.Sprintf(`{"name":"t","arguments":{"who":%q}}`, who))
	r.Profile.Capabilities = json.RawMessage(canBeAsked)
	return r
}

// said is a tool's result that holds text.
func said(text string) string { return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text) }
