package auth

import (
	"crypto/subtle"
	"hash/maphash"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxKept is how long a verified token is kept, and maxInspected one that its issuer
	// was asked about, who may revoke it.
	maxKept      = 5 * time.Minute
	maxInspected = 30 * time.Second
	// maxVerified bounds the tokens that are kept, and maxToken the bytes of one: 32 MiB in
	// all. Others are verified anew each time.
	maxVerified = 4096
	maxToken    = 8 << 10
)

// A verifiedToken is a token that was accepted.
type verifiedToken struct {
	identity *mcp.Identity // which has the token itself
	resource string        // where it was accepted
	key      *publicKey    // that verified it; nil if none did
	most     time.Duration // for how long it may be kept
	until    time.Time     // for how long it is
}

// verifiedTokens are the tokens that were verified lately. Safe for concurrent use.
type verifiedTokens struct {
	seed  maphash.Seed
	known *lru.Cache[uint64, verifiedToken] // by place
}

func newVerifiedTokens() (*verifiedTokens, error) {
	known, err := lru.New[uint64, verifiedToken](maxVerified)
	return &verifiedTokens{maphash.MakeSeed(), known}, err
}

// place is where a token is kept that was accepted at a resource. Of two with one place,
// which nobody can find who does not know the seed, the last is kept.
func (v *verifiedTokens) place(token, resource string) uint64 {
	return maphash.String(v.seed, token) ^ maphash.String(v.seed, resource)
}

// find returns the identity of a token; nil if it has to be verified. What was accepted at
// one resource says nothing of another.
func (v *verifiedTokens) find(token, resource string, now time.Time) *mcp.Identity {
	at := v.place(token, resource)
	t, ok := v.known.Get(at)
	switch {
	case !ok || t.resource != resource || subtle.ConstantTimeCompare([]byte(t.identity.Token()), []byte(token)) == 0:
		return nil
	case now.Before(t.until) && (t.key == nil || !t.key.gone.Load()):
		return t.identity
	}
	v.known.Remove(at)
	return nil
}

// keep keeps a token, not beyond its end.
func (v *verifiedTokens) keep(t verifiedToken, now time.Time) {
	if t.until = now.Add(t.most); t.identity.Expires.Before(t.until) {
		t.until = t.identity.Expires
	}
	if now.Before(t.until) && len(t.identity.Token()) <= maxToken {
		v.known.Add(v.place(t.identity.Token(), t.resource), t)
	}
}
