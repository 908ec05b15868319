package login

import (
	"context"
	"sync"
)

// A sharedLogin logs in when requests need it: once for all waiting requests. The login
// goes on when a request does not wait any longer. A sharedLogin is safe for concurrent
// use.
type sharedLogin struct {
	flow *Flow
	live context.Context // ends with close
	stop context.CancelFunc
	runs sync.WaitGroup

	// mu guards the fields below.
	mu     sync.Mutex
	now    *attempt // nil if there is none in progress
	closed bool
}

// An attempt is a login in progress.
type attempt struct {
	done  chan struct{} // closed when login and err are set
	login *Login
	err   error
}

func newSharedLogin(f *Flow) *sharedLogin {
	d := &sharedLogin{flow: f}
	d.live, d.stop = context.WithCancel(context.Background())
	return d
}

// login waits for the login in progress, or starts one. willDo reports whether a login of
// another process is sufficient.
func (d *sharedLogin) login(ctx context.Context, c Challenge, willDo func(*Login) bool) (*Login, error) {
	a := d.attempt(c, willDo)
	select {
	case <-a.done:
		return a.login, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *sharedLogin) attempt(c Challenge, willDo func(*Login) bool) *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now != nil {
		return d.now
	}
	a := &attempt{done: make(chan struct{})}
	if d.closed {
		a.err = context.Canceled
		close(a.done)
		return a
	}
	d.now = a
	d.runs.Go(func() { d.run(a, c, willDo) }) // ends with the flow; close stops it
	return a
}

func (d *sharedLogin) run(a *attempt, c Challenge, willDo func(*Login) bool) {
	a.login, a.err = d.flow.runUnless(d.live, c, willDo)
	d.mu.Lock()
	d.now = nil
	d.mu.Unlock()
	close(a.done)
}

// close stops a login in progress, and waits for its end.
func (d *sharedLogin) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.runs.Wait()
}
