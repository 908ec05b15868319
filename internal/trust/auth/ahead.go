package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxAhead limits how many tokens the issuer is asked about at a time before they have
	// to be verified again. They count as introspections, and leave the most to new tokens.
	maxAhead = maxInspections / 4
	// aheadPause is between such questions about one token, of which the first has failed.
	aheadPause = 5 * time.Second
)

// A renewal says when the issuer is to be asked again about a token that is in use. It is safe
// for concurrent use.
type renewal struct {
	mu     sync.Mutex // guards the fields below; a leaf
	next   time.Time
	asking bool
}

// begin reports whether the issuer is to be asked now. It is not asked twice at a time.
func (r *renewal) begin(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking || now.Before(r.next) {
		return false
	}
	r.asking = true
	return true
}

func (r *renewal) end(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking, r.next = false, now.Add(aheadPause)
}

// ahead has the issuer asked about tokens in use before they have to be verified again, so
// that no request waits for it. Its owner must close it. It is safe for concurrent use.
type ahead struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards the fields below; a leaf
	asking int
	closed bool
	done   sync.WaitGroup // those that ask
}

func newAhead() *ahead {
	a := &ahead{}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// start runs ask in the background, and reports false if too many are asked about already.
func (a *ahead) start(ask func(context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.asking == maxAhead {
		return false
	}
	a.asking++
	a.done.Go(func() { // until the issuer has answered, or close
		ask(a.ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asking--
	})
	return true
}

// close stops all questions, and waits for their end.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.done.Wait()
}

// renew asks the issuer about a token in use if that is due. What the issuer refuses ends at
// once; if it can't be asked, what it said before holds as long as it would have.
func (j *JWT) renew(v verifiedToken, e *Endpoint, now time.Time) {
	if v.renewal == nil || !v.renewal.begin(now) {
		return
	}
	token := v.identity.Token()
	started := j.ahead.start(func(ctx context.Context) {
		defer func() { v.renewal.end(time.Now()) }()
		if _, err := j.learn(ctx, nil, token, e); errors.As(err, new(*Refusal)) {
			j.verified.forget(token, e.Resource)
		}
	})
	if !started {
		v.renewal.end(now)
	}
}

// learn verifies a token, and remembers it from the time on at which that began: an answer that
// comes late does not count for longer.
func (j *JWT) learn(ctx context.Context, r *http.Request, token string, e *Endpoint) (*mcp.Identity, error) {
	began := time.Now()
	v, err := j.check(ctx, r, token, e)
	if err != nil {
		return nil, err
	}
	v.identity.SetToken(token)
	v.identity.SetVerify(func(ctx context.Context) error {
		if _, err := j.verify(ctx, nil, token, e); errors.As(err, new(*Refusal)) {
			return err
		}
		return nil // also if nobody can be asked at the moment
	})
	v.resource = e.Resource
	j.verified.keep(v, began)
	return v.identity, nil
}
