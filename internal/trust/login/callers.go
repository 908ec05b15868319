package login

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// maxCallers limits the principals whose tokens are kept.
const maxCallers = 4096

// callers keeps the last token of each principal, for requests on its behalf outside of its
// own requests: reopened streams, and the end of sessions. A request itself has its own
// token. It is safe for concurrent use.
type callers struct {
	mu   sync.Mutex // guards last
	last *lru.LRU[mcp.Principal, *mcp.Identity]
}

func newCallers() *callers {
	last, _ := lru.NewLRU[mcp.Principal, *mcp.Identity](maxCallers, nil) // the size is positive
	return &callers{last: last}
}

// Saw records that a request came with a credential.
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

// forgetExpired removes the least recently used values, as long as their callers' tokens
// have expired.
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

// identity returns the identity whose token is sent; nil if there is none, or it has
// expired.
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

// token returns the caller's token; empty if there is none.
func (c *callers) token(b upstream.Behalf) string { return c.identity(b).Token() }
