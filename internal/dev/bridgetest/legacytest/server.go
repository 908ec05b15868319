package legacytest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Server is a legacy server over a connection, played by a test: it runs calls
// side by side, and each may ask.
type Server struct {
	t    testing.TB
	conn transport.Conn

	Capabilities string                                 // everything if empty
	Call         func(c *ServerCall) string             // serves tools/call; returns the result, or an error object {"code":…}
	On           map[string]func(m wire.Message) string // serves other requests
	Heard        func(m wire.Message)                   // notifications, in order; may be nil

	mu      sync.Mutex
	lastID  int
	over    bool   // the back has gone
	told    string // the capabilities in initialize
	replies map[string]chan wire.Message
	calls   map[string]*ServerCall // by id
	running sync.WaitGroup
}

// A ServerCall is a tools/call at a Server.
type ServerCall struct {
	*Server
	Message   wire.Message
	Cancelled chan struct{} // closed by notifications/cancelled
	Ended     chan struct{} // closed when it was answered
}

// Who is the argument by which tests tell calls apart.
func (c *ServerCall) Who() string {
	who, _ := wire.GetString(wire.Get(c.Message.Params, "arguments"), "who")
	return who
}

// Serve plays the server until the connection ends.
func (a *Server) Serve() {
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

func (a *Server) take(m wire.Message) {
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
			close(c.Cancelled)
			delete(a.calls, id)
		}
		if a.Heard != nil {
			a.Heard(m)
		}
	case m.Method == "initialize":
		a.told = string(wire.Get(m.Params, "capabilities"))
		capabilities := a.Capabilities
		if capabilities == "" {
			capabilities = Everything
		}
		a.Send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, InitializeResult("2025-11-25", capabilities))
	case m.Method == "tools/call":
		c := &ServerCall{Server: a, Message: m, Cancelled: make(chan struct{}), Ended: make(chan struct{})}
		a.calls[m.ID.String()] = c
		a.running.Go(c.run)
	case a.On[m.Method] != nil:
		a.running.Go(func() { a.answer(m.ID, a.On[m.Method](m)) })
	default:
		a.answer(m.ID, `{}`)
	}
}

func (c *ServerCall) run() {
	defer close(c.Ended)
	result := c.Server.Call(c)
	c.mu.Lock()
	delete(c.calls, c.Message.ID.String())
	c.mu.Unlock()
	select {
	case <-c.Cancelled: // nobody waits
	default:
		c.answer(c.Message.ID, result)
	}
}

func (a *Server) answer(id wire.ID, result string) {
	member := "result"
	if wire.Get([]byte(result), "code") != nil {
		member = "error"
	}
	a.Send(`{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, result)
}

// Send writes a message; the Back may have gone.
func (a *Server) Send(format string, args ...any) {
	_ = a.conn.Write(fmt.Appendf(nil, format, args...))
}

// hangUp answers all that is open: nobody else will.
func (a *Server) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, c := range a.calls {
		close(c.Cancelled)
	}
	for _, reply := range a.replies {
		select {
		case reply <- wire.Message{Error: wire.Errorf(0, "gone")}:
		default: // it was answered
		}
	}
	clear(a.calls)
}

// SendRequest sends a request of the server and returns its id and where its answer comes.
func (a *Server) SendRequest(method, params string) (int, <-chan wire.Message) {
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
	a.Send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	return id, reply
}

// Ask sends a request of the server and waits for the answer.
func (a *Server) Ask(method, params string) wire.Message {
	_, reply := a.SendRequest(method, params)
	return <-reply
}

// Elicit asks who the user is, on behalf of a call, and returns the answer.
func (c *ServerCall) Elicit() wire.Message {
	return c.Ask("elicitation/create", fmt.Sprintf(`{"message":%q}`, c.Who()))
}

// NewServer returns a server at the end of a connection; Serve plays it.
func NewServer(t testing.TB, conn transport.Conn) *Server {
	return &Server{t: t, conn: conn, replies: make(map[string]chan wire.Message), calls: make(map[string]*ServerCall)}
}

// OnNotification has the server do something when it hears a notification.
func (a *Server) OnNotification(method string, do func()) {
	before := a.Heard
	a.Heard = func(m wire.Message) {
		if before != nil {
			before(m)
		}
		if m.Method == method {
			a.running.Go(do)
		}
	}
}

// Go runs f on a goroutine that Serve waits for.
func (a *Server) Go(f func()) { a.running.Go(f) }

// Declared returns the capabilities in initialize.
func (a *Server) Declared() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told
}

// IsOver reports whether the other end has gone.
func (a *Server) IsOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// CloseConn closes the connection.
func (a *Server) CloseConn() { _ = a.conn.Close() }

// ReuseIDs has the next request of the server have the first id again.
func (a *Server) ReuseIDs() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastID = 0
}

// Complete says that a visit is done.
func (a *Server) Complete(id string) {
	a.Send(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":%q}}`, id)
}

// Context ends with the call's cancellation.
func (c *ServerCall) Context() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	c.running.Go(func() {
		select {
		case <-c.Cancelled:
		case <-c.Ended:
		}
		cancel()
	})
	return ctx
}

// LogText returns a log message.
func LogText(level, data string) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":"` + data + `"}}`
}

// Log has the server write a log message that names no call.
func (a *Server) Log(data string) { a.Send("%s", LogText("info", data)) }
