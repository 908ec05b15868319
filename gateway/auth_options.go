package gateway

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// Auth says how clients are told apart. At most one of its fields is set; with none all
// clients are anonymous.
type Auth struct {
	// Tokens are the tokens that clients may have. Each is a principal's.
	Tokens []StaticToken
	// JWT accepts the access tokens of an issuer.
	JWT *JWT
	// MTLS takes principals from the certificates of clients, which the TLS listener has
	// to verify.
	MTLS *MTLS
}

// A JWT accepts the access tokens of an OAuth issuer, for the public URL of an endpoint. The
// principal is the issuer, a space, and the subject.
type JWT struct {
	Issuer string // its URL, byte for byte as its tokens have it
	// Algorithms are those of signatures that are accepted. Empty means all asymmetric
	// ones.
	Algorithms []string
	// Types are the values of typ that are accepted: at+jwt and JWT. Empty means at+jwt.
	Types []string
	// Scopes are those that every request needs.
	Scopes []string
	// PrincipalClaims are claims that are part of the principal, such as client_id.
	PrincipalClaims []string
	// Introspection asks the issuer about tokens that are not JWTs. Nil means that these
	// are refused.
	Introspection *Introspection
}

// Introspection is the client as which the issuer is asked about tokens.
type Introspection struct {
	ClientID, ClientSecret string
}

// MTLS says what of a certificate is the principal: its SPIFFE ID, or its first subject
// alternative name, as in dns:client.example.com.
type MTLS struct {
	SPIFFE bool
}

// A StaticToken is a token of a principal, sent as a Bearer token.
type StaticToken struct {
	Name   string   // of the principal
	Token  string   // the token, or
	SHA256 string   // its SHA-256, in hexadecimal
	Scopes []string // what policies may demand
}

// authenticator returns the authenticator that a describes; nil for nil.
func (b *build) authenticator(a *Auth) (auth.Authenticator, error) {
	switch {
	case a == nil:
		return nil, nil
	case count(len(a.Tokens) > 0, a.JWT != nil, a.MTLS != nil) > 1:
		return nil, errors.New("want at most one of Tokens, JWT and MTLS")
	case a.MTLS != nil:
		return auth.MTLS(*a.MTLS), nil
	case a.JWT != nil:
		return b.jwt(a.JWT)
	case len(a.Tokens) > 0:
		for _, t := range a.Tokens {
			b.secrets.Learn(t.Token)
		}
		return auth.NewTokens(a.tokens())
	}
	return auth.None, nil
}

func (a *Auth) tokens() []auth.StaticToken {
	tokens := make([]auth.StaticToken, len(a.Tokens))
	for i, t := range a.Tokens {
		tokens[i] = auth.StaticToken(t)
	}
	return tokens
}

// count returns how many are true.
func count(set ...bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// jwt returns an authenticator that the Gateway starts and closes.
func (b *build) jwt(o *JWT) (auth.Authenticator, error) {
	options := auth.JWTOptions{
		Issuer: o.Issuer, Algorithms: o.Algorithms, Types: o.Types, Scopes: o.Scopes, PrincipalClaims: o.PrincipalClaims, Claims: b.policyClaims(),
		Client: b.fetching(o.Issuer), Logger: b.opts.Logger,
	}
	if o.Introspection != nil {
		options.Introspection = new(auth.Introspection(*o.Introspection))
		b.secrets.Learn(o.Introspection.ClientSecret)
	}
	j, err := auth.NewJWT(options)
	if err != nil {
		return nil, err
	}
	return j, nil
}

var errTwoAuthenticators = errors.New("mcpbridge: want one of Authenticator and Auth")
