package login

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Current are credentials that may be replaced by others while requests are sent with them.
// Safe for concurrent use.
type Current struct {
	creds  atomic.Pointer[upstream.Credentials]
	ending sync.WaitGroup // of those that were replaced
}

// NewCurrent returns credentials that are c until they are replaced. The caller must call Close.
func NewCurrent(c upstream.Credentials) *Current {
	out := &Current{}
	out.creds.Store(&c)
	return out
}

// Replace has all further requests sent with other credentials. It is not called after Close.
func (c *Current) Replace(creds upstream.Credentials) {
	before := *c.creds.Swap(&creds)
	c.ending.Go(func() { end(before) }) // which waits for a refresh that is under way
}

// Close ends refreshes in progress.
func (c *Current) Close() {
	end(*c.creds.Load())
	c.ending.Wait()
}

// end closes credentials that have to be closed.
func end(creds upstream.Credentials) {
	if c, ok := creds.(interface{ Close() }); ok {
		c.Close()
	}
}

// Authorization implements [upstream.Credentials].
func (c *Current) Authorization(ctx context.Context, b upstream.Behalf) (string, error) {
	return (*c.creds.Load()).Authorization(ctx, b)
}

// Renew implements [upstream.Credentials]. A request that was refused may have been sent with
// the credentials before.
func (c *Current) Renew(ctx context.Context, r upstream.CredentialRefusal) (string, error) {
	creds := *c.creds.Load()
	if r.Status == http.StatusUnauthorized {
		if value, err := creds.Authorization(ctx, r.Behalf); err == nil && value != r.Value {
			return value, nil
		}
	}
	return creds.Renew(ctx, r)
}
