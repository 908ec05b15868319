package admission

import (
	"context"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A Lifetime is the time in which a server is served. Safe for concurrent use.
type Lifetime struct {
	users atomic.Int64          // requests and connections that are being served
	why   atomic.Pointer[error] // why it is served no more; nil as long as it is
	over  context.Context       // ends once why is set
	end   context.CancelFunc
	idle  wake.Signal // nothing uses it any more
}

// NewLifetime returns a Lifetime that has begun.
func NewLifetime() *Lifetime {
	l := &Lifetime{idle: wake.NewSignal()}
	l.over, l.end = context.WithCancel(context.Background())
	return l
}

// Enter counts a user, until Leave. It reports false if the server is served no more.
func (l *Lifetime) Enter() bool {
	l.Hold()
	if l.Reason() != nil {
		l.Leave()
		return false
	}
	return true
}

// Hold counts a user, until Leave, of a server that may be served no more.
func (l *Lifetime) Hold() { l.users.Add(1) }

// Leave counts a user out.
func (l *Lifetime) Leave() {
	if l.users.Add(-1) == 0 && l.Reason() != nil {
		l.idle.Send()
	}
}

// Reason returns why the server is served no more; nil as long as it is.
func (l *Lifetime) Reason() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Over returns a channel that is closed once the server is served no more.
func (l *Lifetime) Over() <-chan struct{} { return l.over.Done() }

// Context returns a context that ends once the server is served no more.
func (l *Lifetime) Context() context.Context { return l.over }

// End says that the server is served no more. It is called once.
func (l *Lifetime) End(why error) {
	l.why.Store(&why)
	l.end()
}

// Wait waits after End until nothing uses the server, at most until ctx ends.
func (l *Lifetime) Wait(ctx context.Context) {
	for l.users.Load() != 0 {
		select {
		case <-l.idle:
		case <-ctx.Done():
			return
		}
	}
}
