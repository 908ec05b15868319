package auth

import (
	"crypto/sha256"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// refusedLife is how long a token stays refused after its issuer was asked about it.
	refusedLife = 5 * time.Second
	// maxRefused limits the refused tokens that are remembered. They have a table of their
	// own, so that they take the place of no token that is accepted.
	maxRefused = 4096
)

// refusedTokens are tokens that were refused after their issuer was asked. They are safe for
// concurrent use.
type refusedTokens struct {
	known *lru.Cache[[sha256.Size]byte, refusedToken] // by the digest of token and resource
}

type refusedToken struct {
	why   *Refusal
	until time.Time
}

func newRefusedTokens() (*refusedTokens, error) {
	known, err := lru.New[[sha256.Size]byte, refusedToken](maxRefused)
	return &refusedTokens{known}, err
}

// of returns the key for a token at a resource. A token has no space.
func (*refusedTokens) of(token, resource string) [sha256.Size]byte {
	return digest(token + " " + resource)
}

// find returns why a token is refused; nil if the issuer has to be asked.
func (t *refusedTokens) find(at [sha256.Size]byte) error {
	if r, ok := t.known.Get(at); ok && time.Now().Before(r.until) {
		return r.why
	}
	return nil
}

// keep remembers a token if err refuses it.
func (t *refusedTokens) keep(at [sha256.Size]byte, err error) {
	if why := (*Refusal)(nil); errors.As(err, &why) {
		t.known.Add(at, refusedToken{why, time.Now().Add(refusedLife)})
	}
}
