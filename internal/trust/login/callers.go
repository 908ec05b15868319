package login

import (
	"errors"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxCallers limits the principals whose tokens are kept.
const maxCallers = 4096

// callers keeps the last token of each principal, for requests on its behalf outside of its
// own requests: reopened streams, and the end of sessions. A request itself has its own
// token, as long as that lasts. It is safe for concurrent use.
type callers struct {
	mu   sync.Mutex // guards last
	last *lru.LRU[mcp.Principal, latest]
}

// latest are tokens of a principal, maybe twice the same.
type latest struct {
	seen    *mcp.Identity // that came last
	lasting *mcp.Identity // that ends last: another client of the principal may have an older one
}

func newCallers() *callers {
	last, _ := lru.NewLRU[mcp.Principal, latest](maxCallers, nil) // the size is positive
	return &callers{last: last}
}

// Saw records that a request came with a credential.
func (c *callers) Saw(id *mcp.Identity) {
	if id.Token() == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.last.Peek(id.Principal)
	if !ok {
		forgetEnded(c.last, func(l latest) *mcp.Identity { return l.lasting })
	}
	now := latest{id, id}
	if ok && !id.Expires.IsZero() && (before.lasting.Expires.IsZero() || before.lasting.Expires.After(id.Expires)) {
		now.lasting = before.lasting
	}
	c.last.Add(id.Principal, now)
}

// forgetEnded removes the least recently used values, as long as their callers' tokens have
// ended.
func forgetEnded[K comparable, V any](of *lru.LRU[K, V], identity func(V) *mcp.Identity) {
	for {
		_, v, ok := of.GetOldest()
		if !ok || !hasEnded(identity(v)) {
			return
		}
		of.RemoveOldest()
	}
}

// hasEnded reports whether requests with a caller's token are accepted no more. One that has
// expired is sent until then: who reads it may have another clock, and if it is refused, its
// client hears of that and gets another.
func hasEnded(id *mcp.Identity) bool {
	end := id.Accepted()
	return !end.IsZero() && !time.Now().Before(end)
}

// identity returns the identity whose token is sent; nil if there is none, or it has ended. A
// request that has begun may outlive its token, and is finished with a later one of its principal,
// as its client would finish it. Unless all that is left is to read the answer, that one permits
// nothing that the request's own did not: who has a weak token must not wait for a strong one.
func (c *callers) identity(b upstream.Behalf) *mcp.Identity {
	own := b.Identity
	switch {
	case own != nil && own.Token() == "":
		return nil
	case own != nil && !hasEnded(own):
		return own
	}
	if b.Principal == "" { // of whom nobody else's token is
		return nil
	}
	c.mu.Lock()
	last, _ := c.last.Get(b.Principal)
	c.mu.Unlock()
	for _, id := range []*mcp.Identity{last.seen, last.lasting} {
		if id != nil && !hasEnded(id) && (own == nil || b.Reads || own.HasScopes(id.Scopes...)) {
			return id
		}
	}
	return nil
}

// token returns the caller's token; empty if there is none.
func (c *callers) token(b upstream.Behalf) string { return c.identity(b).Token() }

// errNoCaller is the error for requests of the gateway itself, if only callers have tokens.
var errNoCaller = unusableTo(errors.New("wants the token of a caller, and there is none that is valid"), "send requests with a token of the authorization server")

// missing returns the error for a request without a token: its own has ended, or it had none.
func missing(b upstream.Behalf) error {
	if b.Identity.Token() == "" {
		return errNoCaller
	}
	return ended(errors.New("wants the token of a caller, and that of the request has ended"))
}

// ended returns the error for a caller whose token has ended. Its client is told so by the status,
// and sends the request again with another one.
func ended(err error) error {
	return &upstream.CredentialError{Err: err, Step: "send the request again with another token", Caller: true,
		Refusal: &mcp.Refusal{Status: http.StatusUnauthorized, Err: wire.Errorf(spec.CodeInvalidRequest, "the credential of the request has ended")}}
}
