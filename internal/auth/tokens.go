package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// MaxTokens bounds the static tokens of one [Tokens].
const MaxTokens = 1000

// A StaticToken is a token that the configuration has.
type StaticToken struct {
	Name   string   // the principal
	Token  string   // the token, or
	SHA256 string   // the SHA-256 of it, in hexadecimal
	Scopes []string // what the principal may do
}

// Tokens are static tokens. Each names a principal.
type Tokens struct{ known []knownToken }

type knownToken struct {
	digest   [sha256.Size]byte
	identity *mcp.Identity
}

// NewTokens returns Tokens. Errors contain no token.
func NewTokens(tokens []StaticToken) (*Tokens, error) {
	if n := len(tokens); n == 0 || n > MaxTokens {
		return nil, fmt.Errorf("%d tokens, want 1 to %d", n, MaxTokens)
	}
	t := &Tokens{}
	for _, from := range tokens {
		k := knownToken{sha256.Sum256([]byte(from.Token)), &mcp.Identity{Principal: mcp.Principal(from.Name), Scopes: from.Scopes}}
		if from.SHA256 != "" {
			digest, err := hex.DecodeString(from.SHA256)
			if err != nil || len(digest) != sha256.Size || from.Token != "" {
				return nil, fmt.Errorf("token of %s: want either a token, or its SHA-256 as 64 hexadecimal digits", from.Name)
			}
			copy(k.digest[:], digest)
		}
		if err := t.add(k, from); err != nil {
			return nil, fmt.Errorf("token of %s: %w", from.Name, err)
		}
	}
	return t, nil
}

func (t *Tokens) add(k knownToken, from StaticToken) error {
	switch {
	case from.Name == "" || from.Name == string(mcp.Anonymous):
		return errors.New("want a name that is not that of anonymous clients")
	case from.Token == "" && from.SHA256 == "":
		return errors.New("the token is empty")
	case t.find(k.digest) != nil:
		return errors.New("another principal has the same")
	}
	t.known = append(t.known, k)
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

// find takes the same time whichever token it finds, if any (CWE-208).
func (t *Tokens) find(digest [sha256.Size]byte) (found *mcp.Identity) {
	for i := range t.known {
		if subtle.ConstantTimeCompare(t.known[i].digest[:], digest[:]) == 1 {
			found = t.known[i].identity
		}
	}
	return found
}
