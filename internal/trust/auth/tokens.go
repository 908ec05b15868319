package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// MaxTokens limits the static tokens of one [Tokens].
const MaxTokens = 10_000

// A StaticToken is a configured token.
type StaticToken struct {
	Name   string   // the principal
	Token  string   // the token, or its digest
	SHA256 string   // SHA-256 in hexadecimal
	Scopes []string // the scopes of the principal
}

// Tokens are static tokens. Each names a principal, who may have several, so that they can be
// exchanged one after another. Safe for concurrent use.
type Tokens struct{ set atomic.Pointer[tokenSet] }

// A tokenSet has the tokens of one moment. It is read-only once it is in use.
type tokenSet struct {
	seed  maphash.Seed
	known map[uint64][]knownToken // by place; see find
}

type knownToken struct {
	digest   [sha256.Size]byte
	identity *mcp.Identity
}

// NewTokens returns Tokens. Errors contain no token.
func NewTokens(tokens []StaticToken) (*Tokens, error) {
	set, err := newTokenSet(tokens)
	if err != nil {
		return nil, err
	}
	t := &Tokens{}
	t.use(set)
	return t, nil
}

// Replace puts other tokens in the place of these. Streams of tokens that are no more end
// soon. If it fails, nothing has changed.
func (t *Tokens) Replace(tokens []StaticToken) error {
	set, err := newTokenSet(tokens)
	if err == nil {
		t.use(set)
	}
	return err
}

// use makes set the tokens that count. What outlives its request is asked about later.
func (t *Tokens) use(set *tokenSet) {
	for _, tokens := range set.known {
		for _, k := range tokens {
			k.identity.SetVerify(func(context.Context) error { return t.verify(&k) })
		}
	}
	t.set.Store(set)
}

// verify returns an error for a token that is no more, or stands for something else.
func (t *Tokens) verify(k *knownToken) error {
	id := t.set.Load().find(k.digest)
	if id == nil || id.Principal != k.identity.Principal || !slices.Equal(id.Scopes, k.identity.Scopes) {
		return errors.New("its token is not in the configuration any more")
	}
	return nil
}

func newTokenSet(tokens []StaticToken) (*tokenSet, error) {
	if n := len(tokens); n == 0 || n > MaxTokens {
		return nil, fmt.Errorf("%d tokens, want 1 to %d", n, MaxTokens)
	}
	t := &tokenSet{seed: maphash.MakeSeed(), known: make(map[uint64][]knownToken)}
	for _, from := range tokens {
		if err := t.add(from); err != nil {
			return nil, fmt.Errorf("token of %s: %w", from.Name, err)
		}
	}
	return t, nil
}

func (t *tokenSet) add(from StaticToken) error {
	of := digest(from.Token)
	if from.SHA256 != "" {
		given, err := hex.DecodeString(from.SHA256)
		if err != nil || len(given) != sha256.Size || from.Token != "" {
			return errors.New("want either a token, or its SHA-256 as 64 hexadecimal digits")
		}
		copy(of[:], given)
	}
	switch {
	case from.Name == "" || from.Name == string(mcp.Anonymous):
		return errors.New("want a name that is not that of anonymous clients")
	case of == digest(""):
		return errors.New("the token is empty")
	}
	if other := t.find(of); other != nil && other.Principal != mcp.Principal(from.Name) {
		return fmt.Errorf("%s has the same; a token says who sends it, so give each name one of its own", other.Principal)
	} else if other != nil {
		return errors.New("it is there twice; remove one")
	}
	at := t.place(&of)
	t.known[at] = append(t.known[at], knownToken{of, &mcp.Identity{Principal: mcp.Principal(from.Name), Scopes: from.Scopes}})
	return nil
}

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(r *http.Request, _ *Endpoint) (*mcp.Identity, error) {
	token, err := bearer(r, nil)
	if err != nil {
		return nil, err
	}
	if id := t.set.Load().find(digest(token)); id != nil {
		return id, nil
	}
	return nil, invalid(nil, "unknown token")
}

// digest returns the SHA-256 of a token. For a short one it does not allocate.
func digest(token string) [sha256.Size]byte {
	var short [128]byte
	return sha256.Sum256(append(short[:0], token...))
}

// find returns the identity of a token; nil if the token is unknown. Its duration does not
// depend on the known tokens: the place of a digest depends on a random seed, and the
// digests of one place are compared in constant time (CWE-208).
func (t *tokenSet) find(digest [sha256.Size]byte) (found *mcp.Identity) {
	for _, k := range t.known[t.place(&digest)] {
		if subtle.ConstantTimeCompare(k.digest[:], digest[:]) == 1 {
			found = k.identity
		}
	}
	return found
}

func (t *tokenSet) place(digest *[sha256.Size]byte) uint64 { return maphash.Bytes(t.seed, digest[:]) }
