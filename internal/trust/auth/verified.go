package auth

import (
	"crypto/subtle"
	"hash/maphash"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxKept is how long a verified token is cached; maxInspected is the same for
	// introspection, because the issuer may revoke the token.
	maxKept      = 5 * time.Minute
	maxInspected = 30 * time.Second
	// maxVerified limits the cached tokens, and maxToken the bytes of one: 32 MiB in all.
	// Others are verified for every request.
	maxVerified = 4096
	maxToken    = 8 << 10
)

// A verifiedToken is a token that was accepted.
type verifiedToken struct {
	identity *mcp.Identity // it includes the token
	resource string        // the resource at which it was accepted
	key      *publicKey    // the key of its signature; nil if there is none
	most     time.Duration // how long it may be cached
	until    time.Time     // when it has to be verified again
	renewal  *renewal      // when the issuer is asked before that; nil for never
}

// verifiedTokens is a cache of verified tokens. It is safe for concurrent use.
type verifiedTokens struct {
	seed  maphash.Seed
	known *lru.Cache[uint64, verifiedToken] // by place; see place
}

func newVerifiedTokens() (*verifiedTokens, error) {
	known, err := lru.New[uint64, verifiedToken](maxVerified)
	return &verifiedTokens{maphash.MakeSeed(), known}, err
}

// place returns the key for a token that was accepted at a resource. If two tokens have the
// same place, the cache has the last one; finding such tokens requires the seed.
func (v *verifiedTokens) place(token, resource string) uint64 {
	return maphash.String(v.seed, token) ^ maphash.String(v.seed, resource)
}

// find returns what is known of a token; false if it has to be verified. A token is cached for
// one resource only.
func (v *verifiedTokens) find(token, resource string, now time.Time) (verifiedToken, bool) {
	at := v.place(token, resource)
	t, ok := v.known.Get(at)
	switch {
	case !ok || t.resource != resource || !same(t.identity.Token(), token):
		return verifiedToken{}, false
	case now.Before(t.until) && (t.key == nil || !t.key.gone.Load()):
		return t, true
	}
	v.known.Remove(at)
	return verifiedToken{}, false
}

// forget has a token verified by the next request that has it.
func (v *verifiedTokens) forget(token, resource string) {
	at := v.place(token, resource)
	if t, ok := v.known.Peek(at); ok && t.resource == resource && same(t.identity.Token(), token) {
		v.known.Remove(at)
	}
}

// same compares two tokens, in a time that depends on their lengths alone. It is
// [subtle.ConstantTimeCompare] for texts of hundreds of bytes, which every request has.
func same(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	var differs uint64
	for ; len(a) >= 8; a, b = a[8:], b[8:] {
		differs |= word(a) ^ word(b)
	}
	rest := subtle.ConstantTimeCompare([]byte(a), []byte(b)) // whatever came before
	return differs == 0 && rest == 1
}

// word returns the first eight bytes of s.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// keep caches a token, at most until it expires.
func (v *verifiedTokens) keep(t verifiedToken, now time.Time) {
	if t.until = now.Add(t.most); t.identity.Expires.Before(t.until) {
		t.until = t.identity.Expires
	}
	if t.renewal != nil { // nobody has it yet
		t.renewal.next = now.Add(t.until.Sub(now) * 2 / 3)
	}
	if now.Before(t.until) && len(t.identity.Token()) <= maxToken {
		v.forgetExpired(now)
		v.known.Add(v.place(t.identity.Token(), t.resource), t)
	}
}

// forgetExpired removes those that were not used for longest as long as they may not be
// used any more.
func (v *verifiedTokens) forgetExpired(now time.Time) {
	for {
		at, t, ok := v.known.GetOldest()
		if !ok || now.Before(t.until) {
			return
		}
		v.known.Remove(at)
	}
}
