package router

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A line is a client's end of a connection that a rig's gateway serves.
type line struct {
	t     *testing.T
	conn  transport.Conn
	read  chan string // what the gateway sent; closed at the end
	last  error       // what ended it; read only after read is closed
	ended chan error  // receives what ServeConn returned
	stop  context.CancelFunc
}

// connect has the gateway serve a connection in memory.
func (r *rig) connect(t *testing.T) *line {
	near, far := transport.NewPipe()
	return r.connectOver(t, near, far)
}

// connectOver has the gateway serve far, and reads from near.
func (r *rig) connectOver(t *testing.T, near, far transport.Conn) *line {
	ctx, stop := context.WithCancel(t.Context())
	l := &line{t: t, conn: near, read: make(chan string, 100), ended: make(chan error, 1), stop: stop}
	go func() { l.ended <- r.g.ServeConn(ctx, far, "peer") }()
	go l.pour() // ends with the connection
	t.Cleanup(func() {
		stop()
		_ = near.Close()
		_ = far.Close()
	})
	return l
}

func (l *line) pour() {
	defer close(l.read)
	for {
		msg, err := l.conn.Read()
		if err != nil {
			l.last = err
			return
		}
		l.read <- string(msg)
	}
}

func (l *line) send(text string) {
	l.t.Helper()
	if err := l.conn.Write([]byte(text)); err != nil {
		l.t.Fatalf("Write(%s) = %v", text, err)
	}
}

func (l *line) next() string {
	l.t.Helper()
	select {
	case msg := <-l.read:
		return msg
	case <-time.After(patience):
		l.t.Fatal("nothing was sent for long")
		return ""
	}
}

// want reads the next message, and wants every part in it.
func (l *line) want(parts ...string) {
	l.t.Helper()
	msg := l.next()
	for _, part := range parts {
		if !strings.Contains(msg, part) {
			l.t.Errorf("sent = %s, want %s in it", msg, part)
		}
	}
}

// end returns what ServeConn returned.
func (l *line) end() error {
	l.t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(patience):
		l.t.Fatal("the connection is still served")
		return nil
	}
}

// files are the client's end of a pair of pipes, as those of a child process. It is
// a transport.Conn.
type files struct {
	in, out *os.File // which the client writes, and reads
	lines   *bufio.Reader
}

func (f *files) Read() ([]byte, error)  { return f.lines.ReadBytes('\n') }
func (f *files) Write(msg []byte) error { _, err := f.in.Write(append(msg, '\n')); return err }
func (f *files) Close() error           { return errors.Join(f.in.Close(), f.out.Close()) }

// newFiles returns both ends of a pair of pipes.
func newFiles(t *testing.T, opts transport.StdioOptions) (near *files, far *transport.Stdio) {
	t.Helper()
	near = &files{}
	var errs [3]error
	opts.In, near.in, errs[0] = os.Pipe()
	near.out, opts.Out, errs[1] = os.Pipe()
	near.lines = bufio.NewReader(near.out)
	far, errs[2] = transport.OpenStdio(opts)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(opts.In.Close(), opts.Out.Close()); err != nil { // far has its own
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	return near, far
}

func TestF11EachEnvelopeDecides(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	eachEnvelopeDecides(t, r, r.connect(t))
}

func eachEnvelopeDecides(t *testing.T, r *rig, l *line) {
	r.peer.answer("tools/call", say("done"))
	call := modernBody("1", "tools/call", `"name":"a"`)
	for _, step := range []struct{ name, text, want string }{
		{"ping before all", `{"jsonrpc":"2.0","id":0,"method":"ping"}`, `{"jsonrpc":"2.0","id":0,"result":{}}`},
		{"no envelope before initialize", `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`, `"id":"x","error":`},
		{"a probe", modernBody(`"probe"`, "server/discover", ""), `"supportedVersions":["2026-07-28"`},
		{"modern", call, `"id":1,"result":`},
		{"ping between", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"result":{}}`},
		{"modern again", call, `"id":1,"result":`},
		{"a modern ping", modernBody("3", "ping", ""), `"id":3,"error":{"code":-32601`},
		{"a legacy revision in an envelope", strings.Replace(call, "2026-07-28", "2025-06-18", 1), `"id":1,"error":{"code":-32022`},
	} {
		t.Run("F-11 "+step.name, func(t *testing.T) {
			l.send(step.text)
			l.want(step.want)
		})
	}
	if n := len(r.peer.sent("tools/list")); n != 0 {
		t.Errorf("the server was asked %d times for what had no envelope", n)
	}
}

func TestF07PipesReadStrictly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	near, far := newFiles(t, transport.StdioOptions{MaxMessage: 1000})
	l := r.connectOver(t, near, far)
	for _, tt := range []struct{ name, text, want string }{
		{"not JSON", `{"jsonrpc"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"a banner", `Hello, world`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"an id that is none", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"members twice", modernBody("1", "tools/list", `"cursor":"a","cursor":"b"`), `"id":1,"error":{"code":-32600`},
		{"a batch with a modern member", `[` + modernBody("1", "tools/list", "") + `]`, `"id":null,"error":{"code":-32600`},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"id":null,"error":`},
		{"too long", modernBody("1", "tools/list", `"x":"`+strings.Repeat("x", 1000)+`"`), `"id":1,"error":{"code":-32600`},
		{"too long, of whatever it is", `{"params":{"x":"` + strings.Repeat("x", 1000) + `"},"jsonrpc":"2.0","id":1,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"and goes on", `{"jsonrpc":"2.0","id":9,"method":"ping"}`, `"id":9,"result"`},
	} {
		t.Run("F-07 "+tt.name, func(t *testing.T) {
			l.send(tt.text)
			l.want(tt.want)
		})
	}
}

// What is answered with nothing stays so.
func TestPipeDropsWhatAsksNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	l := r.connect(t)
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + envelope + `,"requestId":77}}`,
	} {
		l.send(text)
	}
	l.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	l.want(`"id":9,"result"`)
}

func TestM2L40StreamsOverALegacyServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	l := r.connect(t)
	checkStreamsApart(t, r, l)
	l.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	l.want(`"id":9,"result"`) // nothing came for the stream that was cancelled
}

// Both ends of a connection's life: its client has nothing more to send, or its
// server is told to stop. Streams end with their result and calls are answered.
func TestM2L38PipesEndInOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(*line, *files)
	}{
		{"M2L-38 end of input", func(_ *line, f *files) { _ = f.in.Close() }},
		{"M2L-38 told to stop", func(l *line, _ *files) { l.stop() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			hold := make(chan struct{})
			r.peer.hold["tools/call"] = hold
			r.peer.answer("tools/call", say("done"))
			near, far := newFiles(t, transport.StdioOptions{})
			l := r.connectOver(t, near, far)
			l.send(modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
			l.want("acknowledged")
			l.send(modernBody("2", "tools/call", `"name":"a"`))
			r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
			tt.end(l, near)
			l.want(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"`)
			close(hold)
			l.want(`"id":2,"result":`, "done")
			if err := l.end(); err != nil {
				t.Errorf("ServeConn() = %v", err)
			}
			if s := r.g.Snapshot(); s.Streams != 0 || s.Pairs != 0 {
				t.Errorf("snapshot = %+v, want no streams", s)
			}
		})
	}
}

// A call that takes longer than the drain is cut off, and its client told.
func TestPipeDrainIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Drain = time.Second })
	r.peer.hold["tools/call"] = make(chan struct{})
	l := r.connect(t)
	l.send(modernBody("2", "tools/call", `"name":"a"`))
	r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
	l.stop()
	l.want(`"id":2,"error":{"code":-32603`, "shutting down")
	if err := l.end(); err != nil {
		t.Errorf("ServeConn() = %v", err)
	}
	r.eventually(t, "cancelled upstream", func() bool { return len(r.peer.sent("notifications/cancelled")) == 1 })
}

// severed is a connection that breaks when told to.
type severed struct {
	transport.Conn
	broken chan struct{}
}

var errBroken = errors.New("cable cut")

func (s *severed) Read() ([]byte, error) {
	msg, err := s.Conn.Read()
	select {
	case <-s.broken:
		return nil, errBroken
	default:
		return msg, err
	}
}

func TestF09LostConnectionCancels(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.hold["tools/call"] = make(chan struct{})
	near, far := transport.NewPipe()
	s := &severed{far, make(chan struct{})}
	l := r.connectOver(t, near, s)
	l.send(modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	l.want("acknowledged")
	l.send(modernBody("2", "tools/call", `"name":"a"`))
	r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
	close(s.broken)
	_ = near.Close()
	if err := l.end(); !errors.Is(err, errBroken) {
		t.Errorf("ServeConn() = %v, want %v", err, errBroken)
	}
	r.eventually(t, "cancelled upstream", func() bool { return len(r.peer.sent("notifications/cancelled")) == 1 })
	if s := r.g.Snapshot(); s.Streams != 0 {
		t.Errorf("%d streams are open, want none", s.Streams)
	}
}

// A client that does not read is given up after the write time-out, and holds nobody
// up meanwhile.
func TestPipeStuckReader(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.answer("tools/call", say(strings.Repeat("x", 200_000)))
	near, far := newFiles(t, transport.StdioOptions{WriteTimeout: 2 * time.Second})
	ended := make(chan error, 1)
	go func() { ended <- r.g.ServeConn(t.Context(), far, "peer") }()
	for _, text := range []string{
		modernBody("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["file:///a"]}`),
		modernBody("2", "tools/call", `"name":"a"`), modernBody("3", "tools/call", `"name":"a"`),
	} {
		if err := near.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 2 })
	other := r.listen(t, "1", `{"resourceSubscriptions":["file:///a"]}`)
	other.next()
	r.peer.push(updated("file:///a"))
	if got := other.next(); !strings.Contains(got, "resources/updated") {
		t.Errorf("another client's frame = %s, want the update", got)
	}
	if got := r.call(t, "5", "tools/call", "a", `"name":"a"`); got.status != 200 {
		t.Errorf("another client's call = %d", got.status)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, transport.ErrWriteTimeout) {
			t.Errorf("ServeConn() = %v, want %v", err, transport.ErrWriteTimeout)
		}
	case <-time.After(patience):
		t.Fatalf("a client that does not read is served for %v", patience)
	}
	if s := r.g.Snapshot(); s.Streams != 1 {
		t.Errorf("%d streams are open, want the other's", s.Streams)
	}
}

func TestServeConnUnknownServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	near, far := transport.NewPipe()
	if err := r.g.ServeConn(t.Context(), far, "nobody"); err == nil || !strings.Contains(err.Error(), "peer") {
		t.Errorf("ServeConn() = %v, want an error that names the servers", err)
	}
	if _, err := near.Read(); err != io.EOF {
		t.Errorf("Read() = %v, want the connection closed", err)
	}
}

// A client of both eras: it probes, opens a session, and uses both on one pipe. What
// each hears is of its own era.
func TestF11TwoErasOnOnePipe(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	near, far := newFiles(t, transport.StdioOptions{})
	l := r.connectOver(t, near, far)
	twoEras(t, r, l)
	_ = near.in.Close()
	l.want(`"id":3,"result":{"resultType":"complete"`) // and nothing for those that were cancelled
	if err := l.end(); err != nil {
		t.Errorf("ServeConn() = %v", err)
	}
	if s := r.g.Snapshot(); s.Streams != 0 || s.Members != 0 || s.Pairs != 0 {
		t.Errorf("snapshot = %+v, want nothing left", s)
	}
}

// twoEras probes, opens a session, and uses both eras in turns. It leaves a listen
// stream open, with id 3, and two requests cancelled that are to stay unanswered.
func twoEras(t *testing.T, r *rig, l *line) {
	r.peer.answer("tools/call", say("done"))
	l.send(modernBody(`"probe"`, "server/discover", ""))
	l.want(`"id":"probe","result"`)
	l.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	l.want(`"id":0,"result":`, `"protocolVersion":"2025-06-18"`)
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

	const legacyCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`
	for range 3 { // in turns
		l.send(legacyCall)
		if got := l.next(); !strings.Contains(got, `"id":1,"result"`) || strings.Contains(got, "resultType") {
			t.Errorf("sent = %s, want a legacy result", got)
		}
		l.send(modernBody(`"1"`, "tools/call", `"name":"a"`))
		l.want(`"id":"1","result"`, `"resultType":"complete"`)
	}

	l.send(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	l.want(`"id":2,"result"`)
	l.send(modernBody("3", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["file:///a"]}`))
	l.want("acknowledged", `"io.modelcontextprotocol/subscriptionId":3}`)
	r.peer.push(updated("file:///a"))
	tagged := 0
	for range 2 {
		msg := l.next()
		tagged += strings.Count(msg, `"io.modelcontextprotocol/subscriptionId":3}`)
		if !strings.Contains(msg, "notifications/resources/updated") {
			t.Errorf("sent = %s, want an update", msg)
		}
	}
	if tagged != 1 {
		t.Errorf("%d of two updates are the listen stream's, want one", tagged)
	}

	// A cancellation without envelope reaches the request of either era.
	r.peer.hold["tools/call"] = make(chan struct{})
	for i, call := range []string{legacyCall, modernBody("4", "tools/call", `"name":"a"`)} {
		before := len(r.peer.sent("tools/call"))
		l.send(call)
		r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) > before })
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + []string{"1", "4"}[i] + `}}`)
		r.eventually(t, "cancelled upstream", func() bool { return len(r.peer.sent("notifications/cancelled")) == i+1 })
	}
}

// A handshake that is the last that a client sends is answered, too.
func TestPipeAnswersTheLastHandshake(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["initialize"] = hold
	near, far := newFiles(t, transport.StdioOptions{})
	l := r.connectOver(t, near, far)
	l.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	r.eventually(t, "asked", func() bool { return len(r.peer.sent("initialize")) > 0 })
	_ = near.in.Close()
	close(hold)
	l.want(`"id":0,"result":`)
}

// A client that goes on calling does not keep its connection: what is asked of it once
// that is to end is refused, pings aside, and what was asked before is answered.
func TestPipeDrainTakesNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", say("done"))
	l := r.connect(t)
	l.send(initializeText)
	l.want(`"id":0,"result":`)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
	r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
	l.stop()
	r.eventually(t, "refused", func() bool {
		l.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		return strings.Contains(l.next(), "shutting down")
	})
	l.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	l.want(`"id":3,"result":{}`)
	close(hold)
	l.want(`"id":1,"result":`, "done")
	if err := l.end(); err != nil {
		t.Errorf("ServeConn() = %v", err)
	}
}

// What is sent without waiting for the answer to initialize is served after it, in
// turn, as by a server that reads one message after the other.
func TestPipeAllAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["initialize"] = hold
	r.peer.answer("tools/list", `{"tools":[]}`)
	near, far := newFiles(t, transport.StdioOptions{})
	l := r.connectOver(t, near, far)
	l.send(initializeText)
	l.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	l.want(`"id":"p","result":{}`) // which need not wait
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err := near.in.Close(); err != nil {
		t.Fatal(err)
	}
	close(hold)
	l.want(`"id":0,"result":`)
	l.want(`"id":1,"result":{"tools":[]}`)
	if err := l.end(); err != nil {
		t.Errorf("ServeConn() = %v", err)
	}
	if got := r.peer.sent("notifications/initialized"); len(got) != 1 {
		t.Errorf("the server got %q, want that its client is initialized", got)
	}
}
