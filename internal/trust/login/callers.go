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
		forgetEnded(c.last, func(id *mcp.Identity) *mcp.Identity { return id })
	}
	c.last.Add(id.Principal, id)
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

// identity returns the identity whose token is sent; nil if there is none, or it has
// ended.
func (c *callers) identity(b upstream.Behalf) *mcp.Identity {
	id := b.Identity
	if id == nil && b.Principal != "" {
		c.mu.Lock()
		id, _ = c.last.Get(b.Principal)
		c.mu.Unlock()
	}
	if id.Token() == "" || hasEnded(id) {
		return nil
	}
	return id
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
