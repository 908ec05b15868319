package downstream

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// ErrClientLeft is the cause with which the context of a Stream ends when its client
// has closed the connection.
var ErrClientLeft = errors.New("the client left")

// ErrStray is the cause when the client was cut off for what it sent on the connection.
var ErrStray = errors.New("the client sent too much on the connection of an open stream")

// Streams owns the Streams of a server: net/http forgets a connection that is taken
// over from it. The zero value is ready to use, and safe for concurrent use.
type Streams struct {
	running sync.WaitGroup // two goroutines for each Stream

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	open   map[*Stream]int // how many of its goroutines run
	closed bool
}

// Take makes a Stream of the response to r, with the headers that w has, and has
// serve write it on a goroutine of its own: the handler returns at once. The context
// ends with the connection, and the connection when serve has returned.
//
// It reports false, and has done nothing, where that can't be: over HTTP/2 or 1.0, if
// w is not net/http's, or after Wait. The handler writes the response itself then.
func (ss *Streams) Take(w http.ResponseWriter, r *http.Request, serve func(context.Context, *Stream)) bool {
	if !ss.begin() {
		return false
	}
	s, err := takeOver(w, r)
	if err != nil {
		ss.running.Add(-2)
		return false
	}
	ss.enter(s)
	ctx, cancel := context.WithCancelCause(context.Background())
	go ss.write(ctx, s, serve) // ends with serve
	go ss.read(s, cancel)      // ends with the connection
	return true
}

func (ss *Streams) write(ctx context.Context, s *Stream, serve func(context.Context, *Stream)) {
	defer ss.leave(s)
	defer s.linger()
	serve(ctx, s)
}

func (ss *Streams) read(s *Stream, cancel context.CancelCauseFunc) {
	defer ss.leave(s)
	cancel(s.await())
}

// Wait makes no more Streams, and waits until those that are open have ended. When
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

// begin counts a Stream in that is about to be made.
func (ss *Streams) begin() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return false
	}
	ss.running.Add(2)
	return true
}

// enter notes a Stream that has begun.
func (ss *Streams) enter(s *Stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open == nil {
		ss.open = make(map[*Stream]int)
	}
	ss.open[s] = 2
}

// leave counts one goroutine of a Stream out. The last one closes the connection.
func (ss *Streams) leave(s *Stream) {
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
