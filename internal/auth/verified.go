package auth

import (
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxKept is how long a verified token is kept, and maxInspected one that its issuer
	// was asked about, who may revoke it.
	maxKept      = 5 * time.Minute
	maxInspected = 30 * time.Second
	// maxVerified bounds the tokens that are kept. One that is forgotten is verified anew.
	maxVerified = 10_000
)

// A verifiedToken is a token that was accepted.
type verifiedToken struct {
	identity *mcp.Identity
	key      *publicKey    // that verified it; nil if none did
	most     time.Duration // for how long it may be kept
	until    time.Time     // for how long it is
}

// verifiedTokens are the tokens that were verified lately. Safe for concurrent use.
type verifiedTokens struct {
	known *lru.Cache[[sha256.Size]byte, verifiedToken]
}

func newVerifiedTokens() (*verifiedTokens, error) {
	known, err := lru.New[[sha256.Size]byte, verifiedToken](maxVerified)
	return &verifiedTokens{known}, err
}

// digestFor identifies a token at a resource: what was accepted at one endpoint says
// nothing of another.
func digestFor(token, resource string) [sha256.Size]byte {
	var short [2 << 10]byte // tokens of most issuers fit, and take no memory
	text := append(append(append(short[:0], token...), ' '), resource...)
	return sha256.Sum256(text)
}

// find returns the identity of a token; nil if it has to be verified.
func (v *verifiedTokens) find(digest [sha256.Size]byte, now time.Time) *mcp.Identity {
	t, ok := v.known.Get(digest)
	switch {
	case !ok:
		return nil
	case now.Before(t.until) && (t.key == nil || !t.key.gone.Load()):
		return t.identity
	}
	v.known.Remove(digest)
	return nil
}

// keep keeps a token, not beyond its end.
func (v *verifiedTokens) keep(digest [sha256.Size]byte, t verifiedToken, now time.Time) {
	if t.until = now.Add(t.most); t.identity.Expires.Before(t.until) {
		t.until = t.identity.Expires
	}
	if now.Before(t.until) {
		v.known.Add(digest, t)
	}
}
