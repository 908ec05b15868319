package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// MaxTokens bounds the static tokens of one [Tokens].
const MaxTokens = 10_000

// A StaticToken is a token that the configuration has.
type StaticToken struct {
	Name   string   // the principal
	Token  string   // the token, or
	SHA256 string   // the SHA-256 of it, in hexadecimal
	Scopes []string // what the principal may do
}

// Tokens are static tokens. Each names a principal.
type Tokens struct {
	key   [sha256.Size]byte // random
	known map[[sha256.Size]byte]*mcp.Identity
}

// NewTokens returns Tokens. Errors contain no token.
func NewTokens(tokens []StaticToken) (*Tokens, error) {
	if n := len(tokens); n == 0 || n > MaxTokens {
		return nil, fmt.Errorf("%d tokens, want 1 to %d", n, MaxTokens)
	}
	t := &Tokens{known: make(map[[sha256.Size]byte]*mcp.Identity)}
	_, _ = rand.Read(t.key[:]) // never fails
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
	t.known[t.place(of)] = &mcp.Identity{Principal: mcp.Principal(from.Name), Scopes: from.Scopes}
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

// digest is the SHA-256 of a token. A short one takes no memory.
func digest(token string) [sha256.Size]byte {
	var short [128]byte
	return sha256.Sum256(append(short[:0], token...))
}

// find returns whose a token is; nil if it is nobody's.
func (t *Tokens) find(digest [sha256.Size]byte) *mcp.Identity { return t.known[t.place(digest)] }

// place is where the token with a digest is. Whoever does not know the key can't choose
// which places are compared with each other, so that the time that takes tells nothing of a
// token (CWE-208).
func (t *Tokens) place(digest [sha256.Size]byte) [sha256.Size]byte {
	var text [2 * sha256.Size]byte
	copy(text[:], t.key[:])
	copy(text[sha256.Size:], digest[:])
	return sha256.Sum256(text[:])
}
