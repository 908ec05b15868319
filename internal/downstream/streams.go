package downstream

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ErrClientLeft is the cause with which the context of a stream ends when its client
// has closed the connection.
var ErrClientLeft = errors.New("the client left")

// ErrStray is the cause when the client was cut off for what it sent on the connection.
var ErrStray = errors.New("the client sent too much on the connection of an open stream")

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
// timeout. open writes what is there at once, and serve the rest. The context of serve
// ends when the client has left, or can't be written to; [Response.Cause] tells which.
//
// The connection is taken over from net/http, and Serve returns while serve is running,
// except where that can't be: over HTTP/2 or 1.0, if w is not net/http's, after Wait, or
// if ss is nil. Serve waits for serve then. A connection that was taken over ends with
// serve; it ends in order if serve ends the Response.
//
// open runs before serve's goroutine exists, whose stack stays small: ten thousand
// streams are idle.
func (ss *Streams) Serve(w http.ResponseWriter, r *http.Request, timeout time.Duration, open func(*Response) error, serve func(context.Context, *Response)) {
	setStreamHeaders(w.Header())
	if s := ss.take(w, r); s != nil {
		res := NewResponse(s, timeout)
		res.state = streaming
		_ = open(res) // the client has gone if it fails, and the context says so
		ctx, cancel := context.WithCancelCause(context.Background())
		go ss.write(ctx, s, res, serve) // ends with serve
		go ss.read(s, cancel)           // ends with the connection
		return
	}
	res := NewResponse(w, timeout)
	defer res.Close()
	_ = open(res) // likewise
	serve(r.Context(), res)
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

func (ss *Streams) write(ctx context.Context, s *stream, res *Response, serve func(context.Context, *Response)) {
	serve(ctx, res)
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
