package link

import (
	"context"
	"sync"
	"time"
)

const (
	// sendTimeout bounds a message that nobody waits for, and the end of a session.
	sendTimeout = 5 * time.Second
	// maxSends bounds the messages being sent that nobody waits for, responses to the
	// server's requests among them.
	maxSends = 1024
)

// An outbox owns the goroutines of a Link that nobody waits for but its end.
type outbox struct {
	// mu guards the fields below. It is a leaf.
	mu     sync.Mutex
	sends  int  // messages being sent
	closed bool // no more goroutines may start

	running sync.WaitGroup
}

// start runs f on a goroutine; wait waits for it. It reports false after close.
func (o *outbox) start(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.running.Go(f)
	return true
}

// send runs f, which sends a message within sendTimeout. It reports false where too many
// are being sent, and after close.
func (o *outbox) send(ctx context.Context, f func(context.Context)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.sends >= maxSends {
		return false
	}
	o.sends++
	o.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
		defer cancel()
		f(ctx)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sends--
	})
	return true
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// wait returns when all goroutines have ended, after close.
func (o *outbox) wait() { o.running.Wait() }
