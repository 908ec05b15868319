package mcpbridge

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/auth"
)

// Auth says how clients are told apart. At most one of its fields is set; with none all
// clients are anonymous.
type Auth struct {
	// Tokens are the tokens that clients may have. Each is a principal's.
	Tokens []StaticToken
}

// A StaticToken is a token of a principal, sent as a Bearer token.
type StaticToken struct {
	Name   string   // of the principal
	Token  string   // the token, or
	SHA256 string   // its SHA-256, in hexadecimal
	Scopes []string // what policies may demand
}

// newAuthenticator returns the authenticator that a describes; nil for nil.
func newAuthenticator(a *Auth) (auth.Authenticator, error) {
	switch {
	case a == nil:
		return nil, nil
	case len(a.Tokens) > 0:
		tokens := make([]auth.StaticToken, len(a.Tokens))
		for i, t := range a.Tokens {
			tokens[i] = auth.StaticToken(t)
		}
		return auth.NewTokens(tokens)
	}
	return auth.None, nil
}

var errTwoAuthenticators = errors.New("mcpbridge: want one of Authenticator and Auth")
