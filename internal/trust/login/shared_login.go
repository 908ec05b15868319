package login

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// loginPatience is how long requests wait for a person who has just been led to a
	// browser. Clients give up after a minute, many of them sooner, and can tell nobody then
	// what was missing.
	loginPatience = 20 * time.Second
	// deadlineMargin is how much sooner than at its deadline a request stops waiting.
	deadlineMargin = time.Second
	// firstRest is how long nobody is led to a browser by itself after a login has failed,
	// because somebody said no, or nobody was there. It doubles up to maxRest.
	firstRest = 10 * time.Minute
	maxRest   = 12 * time.Hour
)

// errDeclined is why a login fails whose person does not want to go to its page.
var errDeclined = errors.New("it was declined")

// A sharedLogin logs in when requests need it: once for all waiting requests. The login
// goes on when a request does not wait any longer. A sharedLogin is safe for concurrent
// use.
type sharedLogin struct {
	flow *Flow
	ask  func(ctx context.Context, f *Flow, c Challenge, willDo func(*Login) bool) (*Login, error) // Flow.runUnless
	got  func(*Login)                                                                              // is told of a login before those who wait for it
	live context.Context                                                                           // ends with close
	stop context.CancelFunc
	runs sync.WaitGroup

	// mu guards the fields below.
	mu     sync.Mutex
	now    *attempt // nil if there is none in progress
	closed bool
	rest   time.Duration // that began last; zero after a login
	until  time.Time     // the end of rest
	failed error         // why there is a rest
}

// An attempt is a login in progress.
type attempt struct {
	began time.Time
	stop  context.CancelCauseFunc

	led     chan struct{} // closed when url and browser are set
	url     string        // where a person can log in
	browser bool          // the URL was opened in one

	done  chan struct{} // closed when login and err are set
	login *Login
	err   error
}

// A pendingError says that a login is in progress that a request does not wait for.
type pendingError struct{ browser bool }

func (e *pendingError) Error() string {
	if e.browser {
		return "wants a login, which nobody has finished yet"
	}
	return "wants a login, and no browser could be opened for it here"
}

// A restError says why nobody is asked to log in.
type restError struct {
	err   error
	until time.Time
}

func (e *restError) Error() string {
	return "wants a login, and the last one has failed: " + e.err.Error()
}
func (e *restError) Unwrap() error { return e.err }

func newSharedLogin(f *Flow, got func(*Login)) *sharedLogin {
	d := &sharedLogin{flow: f, got: got}
	d.ask = func(ctx context.Context, f *Flow, c Challenge, willDo func(*Login) bool) (*Login, error) {
		return f.runUnless(ctx, c, willDo)
	}
	d.live, d.stop = context.WithCancel(context.Background())
	return d
}

// login waits for the login in progress, or starts one. willDo reports whether a login of
// another process is sufficient. It returns a *pendingError if that takes long, at once if no
// browser could be opened; and a *restError if nobody is to be bothered again so soon.
func (d *sharedLogin) login(ctx context.Context, c Challenge, willDo func(*Login) bool) (*Login, error) {
	a, err := d.attempt(c, willDo)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(a.patience(ctx))
	defer late.Stop()
	for led := a.led; ; {
		select {
		case <-a.done:
			return a.login, a.err
		case <-led:
			if led = nil; !a.browser {
				return nil, &pendingError{}
			}
		case <-late.C:
			return nil, &pendingError{browser: true}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// patience returns how long a request waits.
func (a *attempt) patience(ctx context.Context) time.Duration {
	wait := time.Until(a.began.Add(loginPatience))
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)-deadlineMargin)
	}
	return max(wait, 0)
}

func (d *sharedLogin) attempt(c Challenge, willDo func(*Login) bool) (*attempt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, context.Canceled
	case d.now != nil:
		return d.now, nil
	case time.Now().Before(d.until):
		return nil, &restError{d.failed, d.until}
	}
	a := &attempt{began: time.Now(), led: make(chan struct{}), done: make(chan struct{})}
	ctx, stop := context.WithCancelCause(d.live)
	a.stop = stop
	d.now = a
	d.runs.Go(func() { d.run(ctx, a, c, willDo) }) // ends with the flow; close stops it
	return a, nil
}

func (d *sharedLogin) run(ctx context.Context, a *attempt, c Challenge, willDo func(*Login) bool) {
	defer a.stop(nil)
	f := *d.flow
	f.Browse = func(url string) error {
		err := d.flow.Browse(url)
		if err == nil || errors.Is(err, ErrNoBrowser) {
			a.url, a.browser = url, err == nil
			close(a.led)
		}
		return err
	}
	a.login, a.err = d.ask(ctx, &f, c, willDo)
	if a.err == nil {
		d.got(a.login)
	}
	d.end(a)
	close(a.done)
}

// end ends an attempt. If a person was bothered in vain, there is a rest.
func (d *sharedLogin) end(a *attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = nil
	switch {
	case a.err == nil:
		d.rest, d.until, d.failed = 0, time.Time{}, nil
	case d.live.Err() == nil && (a.browser || isRefusal(a.err)):
		d.rest = min(max(firstRest, 2*d.rest), maxRest)
		d.until, d.failed = time.Now().Add(d.rest), a.err
	}
}

// isRefusal reports whether a person has refused to log in.
func isRefusal(err error) bool {
	var refused *GrantError
	return errors.Is(err, errDeclined) || errors.As(err, &refused) && refused.Code == "access_denied"
}

// visit returns where a person can log in now; nil for nowhere.
func (d *sharedLogin) visit() *mcp.Visit {
	d.mu.Lock()
	a := d.now
	d.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.led:
		return &mcp.Visit{URL: a.url, Done: a.done, Decline: func() { a.stop(errDeclined) }}
	default:
		return nil
	}
}

// close stops a login in progress, and waits for its end.
func (d *sharedLogin) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.runs.Wait()
}

// step says what to do about an error of login. again is the command that logs in.
func step(err error, again string) string {
	var pending *pendingError
	var rest *restError
	switch {
	case errors.As(err, &pending) && pending.browser:
		return fmt.Sprintf("log in at the page that was opened, or %s; then try again", again)
	case errors.As(err, &pending):
		return again + ", then try again"
	case errors.As(err, &rest):
		return fmt.Sprintf("%s; mcpbridge asks nobody by itself before %s", again, rest.until.Format(time.TimeOnly))
	}
	return again
}
