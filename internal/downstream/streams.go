package downstream

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// ErrClientLeft is the cause of a stream's context if the client has closed the
// connection.
var ErrClientLeft = errors.New("the client left")

// ErrStray is the cause if the client was disconnected because of what it sent on the
// connection.
var ErrStray = errors.New("the client sent too much on the connection of an open stream")

// ReportStray counts and logs, with args, that the context of a server's stream has ended
// because of ErrStray, if it has.
func ReportStray(ctx context.Context, m mcp.Metrics, server string, log *slog.Logger, args ...any) {
	if context.Cause(ctx) == ErrStray {
		m.Limit(server, "stray_bytes")
		log.Warn("stream closed: its client sent too much on the connection", args...)
	}
}

// Streams owns the connections of event streams that were hijacked from net/http, which
// does not close them. The zero value is ready to use, and safe for concurrent use.
type Streams struct {
	running sync.WaitGroup // two for each stream: its reader, and its turns

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	open   map[*stream]int // what of each stream has not ended: its reader, its turns
	closed bool
}

// Serve serves an event stream as the response to r, as ServeTurns does. A new goroutine writes the
// rest.
func (ss *Streams) Serve(w http.ResponseWriter, r *http.Request, timeout time.Duration, open func(ctx context.Context, res *Response) (rest func())) {
	ss.ServeTurns(w, r, timeout, func(ctx context.Context, res *Response) (turn Turn) {
		rest := open(ctx, res)
		if rest == nil {
			return nil
		}
		res.turns.Send()
		return func() bool { rest(); return true }
	})
}

// A Turn writes what there is to write to an event stream. It reports whether the stream is over.
type Turn = func() (over bool)

// ServeTurns serves an event stream as the response to r. Each write may take timeout. open begins the
// stream, and returns what writes the rest, or nil if there is none: it is called when Turns of the
// Response are sent to, and when ctx has ended. That is when the client has left, or a write has
// failed; [Response.Cause] tells which.
//
// ServeTurns hijacks the connection and returns while the rest is written. If that is
// impossible, it returns at the end: over HTTP/2 or 1.0, if w is not net/http's, after
// Wait, or if ss is nil. A hijacked connection ends with its stream; it ends gracefully if
// the Response was ended.
//
// Either way the request gives back its place among those in flight; see [Placed].
//
// While there is nothing to write, a stream has one goroutine, which waits for the end of the
// connection. That matters with ten thousand idle streams.
func (ss *Streams) ServeTurns(w http.ResponseWriter, r *http.Request, timeout time.Duration, open func(ctx context.Context, res *Response) Turn) {
	setStreamHeaders(w.Header())
	s := ss.take(w, r)
	if s == nil {
		serveHere(w, r, timeout, open)
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go ss.read(s, cancel) // ends with the connection
	res := NewResponse(s, timeout)
	res.state, res.turns = streaming, &s.turns
	turn := open(ctx, res)
	if turn == nil {
		ss.end(s, res)
		return
	}
	s.turns.Start(func() bool {
		over := turn()
		if over {
			ss.end(s, res)
		}
		return over
	})
}

// serveHere serves a stream on the connection of its handler.
func serveHere(w http.ResponseWriter, r *http.Request, timeout time.Duration, open func(ctx context.Context, res *Response) Turn) {
	res := NewResponse(w, timeout)
	defer res.Close()
	res.turns = new(wake.Turns)
	turn := open(r.Context(), res)
	if turn == nil {
		return
	}
	if leave, ok := r.Context().Value(placeKey{}).(func()); ok {
		leave()
	}
	res.turns.Run(r.Context(), turn)
}

// placeKey is the key of what gives back the place of a request, in its context.
type placeKey struct{}

// Stays reports whether the handler of a stream in response to r stays for as long as the
// stream. Over HTTP/1.1 it ends before.
func Stays(r *http.Request) bool { return r.ProtoMajor != 1 || r.ProtoMinor == 0 }

// Placed returns a request that has a place among those in flight until leave is called, and
// what its handler calls once it has ended. Serve calls it before, if the handler [Stays]:
// streams have limits of their own, and are no requests in flight, over HTTP/2 as over
// HTTP/1.1. A request may have several places.
func Placed(r *http.Request, leave func()) (placed *http.Request, ended func()) {
	ended = sync.OnceFunc(leave)
	all := ended
	if others, ok := r.Context().Value(placeKey{}).(func()); ok {
		all = func() { ended(); others() }
	}
	return r.WithContext(context.WithValue(r.Context(), placeKey{}, all)), ended
}

// take hijacks the connection of r, or returns nil if that is impossible.
func (ss *Streams) take(w http.ResponseWriter, r *http.Request) *stream {
	if ss == nil || !ss.begin() {
		return nil
	}
	s, err := takeOver(w, r)
	if err != nil {
		ss.running.Add(-2)
		return nil
	}
	ss.enter(s)
	return s
}

func (ss *Streams) end(s *stream, res *Response) {
	res.Close()
	s.linger()
	ss.leave(s)
}

func (ss *Streams) read(s *stream, cancel context.CancelCauseFunc) {
	cancel(s.await())
	s.turns.Send()
	ss.leave(s)
}

// Wait refuses further connections, and waits until the open ones have ended. When ctx
// ends, it closes them, and returns the cause.
func (ss *Streams) Wait(ctx context.Context) error {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	return Join(ctx, &ss.running, ss.cut)
}

// cut closes the open connections, and returns their number.
func (ss *Streams) cut() int {
	ss.mu.Lock()
	open := slices.Collect(maps.Keys(ss.open))
	ss.mu.Unlock()
	for _, s := range open {
		s.close()
	}
	return len(open)
}

// Join waits for running. When ctx ends, it calls cut, which ends it soon and returns how
// much it ended. Join then returns the cause of ctx, or nil if there was nothing left to
// end.
func Join(ctx context.Context, running *sync.WaitGroup, cut func() int) error {
	ended := make(chan struct{})
	go func() { // ends with running, at the latest soon after cut
		defer close(ended)
		running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	n := cut()
	<-ended
	if n == 0 {
		return nil // all had ended just before
	}
	return context.Cause(ctx)
}

// begin registers a stream that is about to begin.
func (ss *Streams) begin() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return false
	}
	ss.running.Add(2)
	return true
}

// enter adds a stream that has begun.
func (ss *Streams) enter(s *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open == nil {
		ss.open = make(map[*stream]int)
	}
	ss.open[s] = 2
}

// leave removes the reader or the turns of a stream. The last one closes the connection.
func (ss *Streams) leave(s *stream) {
	defer ss.running.Done()
	ss.mu.Lock()
	ss.open[s]--
	last := ss.open[s] == 0
	if last {
		delete(ss.open, s)
	}
	ss.mu.Unlock()
	if last {
		s.close()
	}
}
