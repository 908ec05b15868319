package gateway

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
)

// A lifetime says whether a server is still served, and counts what uses it. Safe for
// concurrent use.
type lifetime struct {
	scope   string             // what the scopes of its profiles begin with; of no other server, not of one of the same name either
	ended   func()             // called once the server is closed; may be nil
	streams downstream.Streams // listen streams over HTTP

	users atomic.Int64          // requests and connections that are being served
	why   atomic.Pointer[error] // why it is served no more; nil as long as it is
	over  chan struct{}         // closed once why is set
	idle  chan struct{}         // capacity 1: nothing uses it any more
}

func newLifetime(scope string, ended func()) *lifetime {
	return &lifetime{scope: scope, ended: ended, over: make(chan struct{}), idle: make(chan struct{}, 1)}
}

// enter counts a user, until leave. It reports false if the server is served no more: there
// is another table then.
func (l *lifetime) enter() bool {
	l.hold()
	if l.reason() != nil {
		l.leave()
		return false
	}
	return true
}

// hold counts one more user for one that is counted, until leave.
func (l *lifetime) hold() { l.users.Add(1) }

func (l *lifetime) leave() {
	if l.users.Add(-1) == 0 && l.reason() != nil {
		select {
		case l.idle <- struct{}{}:
		default: // it is known
		}
	}
}

// reason returns why the server is served no more; nil as long as it is.
func (l *lifetime) reason() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return nil
}

// end says that the server is served no more. It is called once.
func (l *lifetime) end(why error) {
	l.why.Store(&why)
	close(l.over)
}

// wait waits after end until nothing uses the server, at most until ctx ends.
func (l *lifetime) wait(ctx context.Context) {
	for l.users.Load() != 0 {
		select {
		case <-l.idle:
		case <-ctx.Done():
			return
		}
	}
}

// A replacedError is why a server is served no more.
type replacedError struct {
	server  string
	removed bool // there is no other of its name
}

func (e *replacedError) Error() string {
	if e.removed {
		return fmt.Sprintf("server %q was removed from the gateway's configuration; use another server", e.server)
	}
	return fmt.Sprintf("server %q was changed in the gateway's configuration; connect again", e.server)
}
