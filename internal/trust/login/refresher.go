package login

import (
	"context"
	"sync"
	"time"
)

const (
	// dueWait is how long a request waits for the refresh of a token that still lives.
	dueWait = time.Second
	// closeWait is how long a refresh may go on after close. A refresh that is cut off may
	// lose a login: the authorization server has accepted the old refresh token, and
	// nobody has read the next.
	closeWait = 2 * time.Second
)

// A refresher refreshes the token of a holder beside the requests that send it: as long as the
// token lives, it is used, however long the authorization server takes, and whatever it
// answers. A refresher is safe for concurrent use.
type refresher struct {
	holder *holder
	live   context.Context // ends with close, or closeWait later
	stop   context.CancelFunc
	runs   sync.WaitGroup

	closing chan struct{} // closed by close

	// mu guards the fields below.
	mu     sync.Mutex
	now    chan struct{} // closed when the refresh in progress has ended; nil if there is none
	closed bool
}

func newRefresher(h *holder) *refresher {
	r := &refresher{holder: h, closing: make(chan struct{})}
	r.live, r.stop = context.WithCancel(context.Background())
	return r
}

// value returns the value of Authorization for a request. The error is that of the refresh if
// the token has ended.
func (r *refresher) value(ctx context.Context) (string, error) {
	t := r.holder.now.Load()
	if t == nil {
		if value, err := r.holder.value(ctx); err != nil {
			return value, err
		}
		t = r.holder.now.Load()
	}
	if t != nil && t.Valid() {
		return t.value, nil
	}
	if t != nil && t.lives() {
		select {
		case <-r.begin():
		case <-time.After(dueWait):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if t = r.holder.now.Load(); t != nil && t.lives() {
			return t.value, nil
		}
	}
	return r.holder.value(ctx)
}

// begin starts a refresh, unless there is one in progress, and returns its end.
func (r *refresher) begin() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		return r.now
	}
	done := make(chan struct{})
	if r.closed {
		close(done)
		return done
	}
	r.now = done
	r.runs.Go(func() { r.run(done) }) // ends with the holder's get; close waits for it
	return done
}

func (r *refresher) run(done chan struct{}) {
	_, _ = r.holder.renewUntil(r.live, r.live, "", nil) // why it failed is told when the token has ended
	r.mu.Lock()
	r.now = nil
	r.mu.Unlock()
	close(done)
}

// also runs f beside the requests, unless close was called, which closes closing, and waits for f.
func (r *refresher) also(f func(ctx context.Context, closing <-chan struct{})) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.runs.Go(func() { f(r.live, r.closing) }) // f ends soon after closing is closed
	}
}

// close waits for a refresh in progress, and stops it if it takes long.
func (r *refresher) close() {
	r.mu.Lock()
	if !r.closed {
		close(r.closing)
	}
	r.closed = true
	r.mu.Unlock()
	late := time.AfterFunc(closeWait, r.stop)
	r.runs.Wait()
	late.Stop()
	r.stop()
}
