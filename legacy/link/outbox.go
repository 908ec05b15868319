package link

import (
	"context"
	"sync"
	"time"
)

const (
	// sendTimeout bounds a message that is sent in the background over HTTP, the wait for the
	// response to a request that was, and the end of a session.
	sendTimeout = 5 * time.Second
	// maxSends bounds the number of messages that are being sent in the background.
	// Responses to the server's requests are among them.
	maxSends = 1024
)

// An outbox owns the background goroutines of a Link.
type outbox struct {
	// mu guards the fields below. It is a leaf.
	mu     sync.Mutex
	sends  int  // messages being sent
	closed bool // no more goroutines may start

	running sync.WaitGroup
}

// start runs f on a goroutine. It returns false after close.
func (o *outbox) start(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.running.Go(f)
	return true
}

// send runs f, which sends a message within sendTimeout. It returns false if too many
// messages are being sent, and after close.
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
