package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"

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

// Tokens are static tokens. Each names a principal.
type Tokens struct {
	seed  maphash.Seed
	known map[uint64][]knownToken // by place; see find
}

type knownToken struct {
	digest   [sha256.Size]byte
	identity *mcp.Identity
}

// NewTokens returns Tokens. Errors contain no token.
func NewTokens(tokens []StaticToken) (*Tokens, error) {
	if n := len(tokens); n == 0 || n > MaxTokens {
		return nil, fmt.Errorf("%d tokens, want 1 to %d", n, MaxTokens)
	}
	t := &Tokens{seed: maphash.MakeSeed(), known: make(map[uint64][]knownToken)}
	for _, from := range tokens {
		if err := t.add(from); err != nil {
			return nil, fmt.Errorf("token of %s: %w", from.Name, err)
		}
	}
	return t, nil
}

func (t *Tokens) add(from StaticToken) error {
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
	case t.find(of) != nil:
		return errors.New("another principal has the same")
	}
	at := t.place(&of)
	t.known[at] = append(t.known[at], knownToken{of, &mcp.Identity{Principal: mcp.Principal(from.Name), Scopes: from.Scopes}})
	return nil
}

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(r *http.Request, _ *Endpoint) (*mcp.Identity, error) {
	token, err := bearer(r)
	switch {
	case err != nil:
		return nil, err
	case token == "":
		return nil, missing(nil)
	}
	if id := t.find(digest(token)); id != nil {
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
func (t *Tokens) find(digest [sha256.Size]byte) (found *mcp.Identity) {
	for _, k := range t.known[t.place(&digest)] {
		if subtle.ConstantTimeCompare(k.digest[:], digest[:]) == 1 {
			found = k.identity
		}
	}
	return found
}

func (t *Tokens) place(digest *[sha256.Size]byte) uint64 { return maphash.Bytes(t.seed, digest[:]) }
