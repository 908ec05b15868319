package login

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// maxExchanged limits the callers' tokens for which exchanged tokens are kept.
const maxExchanged = 4096

// An Exchange exchanges callers' tokens for tokens of the server. It implements
// [upstream.Credentials].
//
// Spec: RFC 8693.
type Exchange struct {
	*callers
	issuer *issuerClient
	server *issuerClient // the server's own, which takes grants of the issuer; nil if that is the issuer

	ending sync.WaitGroup // of those that were dropped

	// mu guards the fields below.
	mu      sync.Mutex
	holders *lru.LRU[[sha256.Size]byte, *exchanged]
	closed  bool
}

// An exchanged has the token for a caller's, which is of no use after that has ended.
type exchanged struct {
	*holder
	beside *refresher
	own    *mcp.Identity
}

// end ends a refresh in progress.
func (x *exchanged) end() {
	x.beside.close()
	x.put(nil)
}

// TokenExchange returns credentials that exchange callers' tokens. The caller must call Close.
func TokenExchange(o IssuerOptions) (*Exchange, error) {
	i, err := newIssuerClient(o)
	if err != nil {
		return nil, err
	}
	var server *issuerClient
	if o.IDJAG != nil {
		if server, err = newIssuerClient(*o.IDJAG); err != nil {
			return nil, err
		}
	}
	e := &Exchange{callers: newCallers(), issuer: i, server: server}
	e.holders, err = lru.NewLRU(maxExchanged, func(_ [sha256.Size]byte, x *exchanged) { e.ending.Go(x.end) })
	return e, err
}

// Close ends refreshes in progress. No other begins beside requests after it.
func (e *Exchange) Close() {
	e.mu.Lock()
	e.closed = true
	e.holders.Purge()
	e.mu.Unlock()
	e.ending.Wait()
}

const adviceExchange = "check upstream_auth.token_exchange, and that the authorization server lets mcpbridge exchange tokens for this server"

// Authorization implements [upstream.Credentials]. Requests of the gateway itself have no
// caller, and so no header.
func (e *Exchange) Authorization(ctx context.Context, b upstream.Behalf) (string, error) {
	if b == (upstream.Behalf{}) {
		return "", nil
	}
	x, err := e.holder(b)
	if err != nil {
		return "", err
	}
	return x.beside.value(ctx)
}

// Renew implements [upstream.Credentials].
func (e *Exchange) Renew(ctx context.Context, r upstream.CredentialRefusal) (string, error) {
	if r.Behalf == (upstream.Behalf{}) {
		return "", errNoCaller
	}
	x, err := e.holder(r.Behalf)
	if err != nil {
		return "", err
	}
	return renewed(&r, adviceExchange, func(more []string) (string, error) { return x.renew(ctx, r.Value, more) })
}

// holder returns the holder of the token for the caller's. Its key is a digest of the
// caller's token: tokens of one principal may have different scopes.
func (e *Exchange) holder(b upstream.Behalf) (*exchanged, error) {
	id := e.identity(b)
	if id == nil {
		return nil, missing(b)
	}
	key := sha256.Sum256([]byte(id.Token()))
	e.mu.Lock()
	defer e.mu.Unlock()
	if x, ok := e.holders.Get(key); ok {
		return x, nil
	}
	h := newHolder(e.issuer.Secrets, func(ctx context.Context, _ string, scopes []string) (*held, error) {
		return e.exchange(ctx, id, scopes)
	})
	x := &exchanged{h, newRefresher(h), id}
	if e.closed {
		x.beside.close() // which has nothing to wait for
		return x, nil
	}
	forgetEnded(e.holders, func(x *exchanged) *mcp.Identity { return x.own })
	e.holders.Add(key, x)
	return x, nil
}

// exchange requests a token for a caller's. It does not last longer than the caller's is accepted.
func (e *Exchange) exchange(ctx context.Context, id *mcp.Identity, scopes []string) (*held, error) {
	o := &e.issuer.IssuerOptions
	scopes = union(o.Scopes, scopes)
	params := url.Values{
		"grant_type":           {grantExchange},
		"subject_token":        {id.Token()},
		"subject_token_type":   {typeAccessToken},
		"requested_token_type": {typeAccessToken},
	}
	if o.Audience != "" {
		params.Set("audience", o.Audience)
	}
	issue := e.issuer.token
	if e.server != nil {
		issue = e.byGrant
	}
	t, err := issue(ctx, params, scopes)
	if err != nil {
		return nil, notExchanged(id, fmt.Errorf("can't be used, since no token was issued in exchange for the caller's: %w", err))
	}
	if end := id.Accepted(); !end.IsZero() && (t.Expires.IsZero() || t.Expires.After(end)) {
		t.Expires = end
	}
	if t.AccessToken == id.Token() {
		return nil, unusableTo(errors.New("can't be used, since the authorization server returned the caller's own token instead of one for it"), adviceExchange)
	}
	return hold(t, scopes), nil
}

// notExchanged returns the error if no token was issued for a caller's. If that has expired, and the
// authorization server has judged it, another one of the caller's helps.
//
// Spec: RFC 8693, 2.2.2.
func notExchanged(id *mcp.Identity, err error) error {
	var refused *GrantError
	if errors.As(err, &refused) && refused.Code != "" && !refused.busy() && !id.Expires.IsZero() && !time.Now().Before(id.Expires) {
		return ended(err)
	}
	return unusableTo(err, adviceExchange)
}
