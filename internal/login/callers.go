package login

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// maxCallers bounds the principals whose tokens are known.
const maxCallers = 4096

// callers know the last token of each principal, for what is sent on its behalf outside of
// any request: streams that are opened again, and ends of sessions. A request itself has
// the token it came with. It is safe for concurrent use.
type callers struct {
	mu   sync.Mutex // guards last
	last *lru.LRU[mcp.Principal, *mcp.Identity]
}

func newCallers() *callers {
	last, _ := lru.NewLRU[mcp.Principal, *mcp.Identity](maxCallers, nil) // the size is positive
	return &callers{last: last}
}

// Saw notes that a request came with a credential.
func (c *callers) Saw(id *mcp.Identity) {
	if id.Token() == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.Contains(id.Principal) {
		forgetExpired(c.last, func(id *mcp.Identity) *mcp.Identity { return id })
	}
	c.last.Add(id.Principal, id)
}

// forgetExpired removes those that were not used for longest as long as their callers'
// tokens have expired.
func forgetExpired[K comparable, V any](of *lru.LRU[K, V], identity func(V) *mcp.Identity) {
	for {
		_, v, ok := of.GetOldest()
		if !ok || !hasExpired(identity(v)) {
			return
		}
		of.RemoveOldest()
	}
}

func hasExpired(id *mcp.Identity) bool {
	return !id.Expires.IsZero() && !time.Now().Before(id.Expires)
}

// identity returns whose token is sent; nil for none. One that has expired is nobody's.
func (c *callers) identity(b upstream.Behalf) *mcp.Identity {
	id := b.Identity
	if id == nil && b.Principal != "" {
		c.mu.Lock()
		id, _ = c.last.Get(b.Principal)
		c.mu.Unlock()
	}
	if id.Token() == "" || hasExpired(id) {
		return nil
	}
	return id
}

// token returns the caller's token; empty for none.
func (c *callers) token(b upstream.Behalf) string { return c.identity(b).Token() }
