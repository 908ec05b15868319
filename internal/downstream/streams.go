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
)

// ErrClientLeft is the cause with which the context of a stream ends when its client
// has closed the connection.
var ErrClientLeft = errors.New("the client left")

// ErrStray is the cause when the client was cut off for what it sent on the connection.
var ErrStray = errors.New("the client sent too much on the connection of an open stream")

// ReportStray counts and logs, with args, that ErrStray is why the ctx of a server's stream
// has ended, if it is.
func ReportStray(ctx context.Context, m mcp.Metrics, server string, log *slog.Logger, args ...any) {
	if context.Cause(ctx) == ErrStray {
		m.Limit(server, "stray_bytes")
		log.Warn("stream closed: its client goes on sending on the stream's connection", args...)
	}
}

// Streams owns the connections of event streams that were taken over from net/http,
// which forgets them. The zero value is ready to use, and safe for concurrent use.
type Streams struct {
	running sync.WaitGroup // two goroutines for each stream

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	open   map[*stream]int // how many of its goroutines run
	closed bool
}

// Serve makes a stream of events of the response to r, to which each write may take
// timeout. open begins it, and returns what writes the rest, or nil if there is none. ctx
// ends when the client has left, or can't be written to; [Response.Cause] tells which.
//
// The connection is taken over from net/http, and Serve returns while the rest is
// written, except where that can't be: over HTTP/2 or 1.0, if w is not net/http's, after
// Wait, or if ss is nil. A connection that was taken over ends with its stream; it ends
// in order if the Response was ended.
//
// The goroutine that writes the rest is a new one, whose stack is small as long as it
// only waits: ten thousand streams are idle.
func (ss *Streams) Serve(w http.ResponseWriter, r *http.Request, timeout time.Duration, open func(ctx context.Context, res *Response) (rest func())) {
	setStreamHeaders(w.Header())
	s := ss.take(w, r)
	if s == nil {
		res := NewResponse(w, timeout)
		defer res.Close()
		if rest := open(r.Context(), res); rest != nil {
			rest()
		}
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go ss.read(s, cancel) // ends with the connection
	res := NewResponse(s, timeout)
	res.state = streaming
	if rest := open(ctx, res); rest != nil {
		go ss.write(s, res, rest) // ends with rest
		return
	}
	ss.end(s, res)
}

// take takes over the connection of r, or returns nil where that can't be.
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

func (ss *Streams) write(s *stream, res *Response, rest func()) {
	rest()
	ss.end(s, res)
}

func (ss *Streams) end(s *stream, res *Response) {
	res.Close()
	s.linger()
	ss.leave(s)
}

func (ss *Streams) read(s *stream, cancel context.CancelCauseFunc) {
	cancel(s.await())
	ss.leave(s)
}

// Wait takes over no more connections, and waits until those that are open have ended. When
// ctx ends they are cut off, and Wait returns its cause.
func (ss *Streams) Wait(ctx context.Context) error {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	return Join(ctx, &ss.running, ss.cut)
}

// cut ends those that are open, and returns their number.
func (ss *Streams) cut() int {
	ss.mu.Lock()
	open := slices.Collect(maps.Keys(ss.open))
	ss.mu.Unlock()
	for _, s := range open {
		s.close()
	}
	return len(open)
}

// Join waits for what runs. When ctx ends, cut has to end it soon, and returns how much
// that was; Join returns the cause of ctx then, or nil if there was nothing left to cut.
func Join(ctx context.Context, running *sync.WaitGroup, cut func() int) error {
	ended := make(chan struct{})
	go func() { // ends with the last, at the latest soon after cut
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
		return nil // it had ended just before
	}
	return context.Cause(ctx)
}

// begin counts a stream in that is about to be made.
func (ss *Streams) begin() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return false
	}
	ss.running.Add(2)
	return true
}

// enter notes a stream that has begun.
func (ss *Streams) enter(s *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open == nil {
		ss.open = make(map[*stream]int)
	}
	ss.open[s] = 2
}

// leave counts one goroutine of a stream out. The last one closes the connection.
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
