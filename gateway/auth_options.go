package gateway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// Auth says how clients are told apart: by each of the ways that are set; with none all
// clients are anonymous. A request with a token is by that, whatever certificate its
// connection has.
type Auth struct {
	// Tokens are the tokens that clients may have. Each is a principal's. Beside other ways
	// names have no colon, which the principals of those have.
	Tokens []StaticToken
	// JWT accepts the access tokens of an issuer.
	JWT *JWT
	// OtherIssuers accept those of further issuers, each as it says: a token is verified by
	// the issuer that it names alone. One issuer in all may have Introspection.
	OtherIssuers []JWT
	// MTLS takes principals from the certificates of clients, which the TLS listener has
	// to verify. Beside other ways, mtls: is before them.
	MTLS *MTLS
}

// A JWT accepts the access tokens of an OAuth issuer, for the public URL of an endpoint. The
// principal is the issuer, a space, and the subject.
type JWT struct {
	Issuer string // its URL, byte for byte as its tokens have it
	// Algorithms are those of signatures that are accepted. Empty means all asymmetric
	// ones.
	Algorithms []string
	// Audience has values of aud that are accepted besides the public URL. A token of one of
	// them opens each endpoint that has it.
	Audience []string
	// Types are the values of typ that are accepted: at+jwt, JWT, and missing for tokens
	// without one. Empty means at+jwt.
	Types []string
	// Scopes are those that every request needs, as clients ask for them. One that begins
	// with the public URL or an audience, and a slash, may be in a token without that.
	Scopes []string
	// PrincipalClaims are claims that are part of the principal, such as client_id.
	PrincipalClaims []string
	// LoginClient is the client of the gateway at the issuer, with which the users of servers
	// with logins PerPrincipal prove who they are in a browser. Nil means one that registers
	// itself.
	LoginClient *LoginClient
	// Introspection asks the issuer about tokens that are not JWTs. Nil means that these
	// are refused.
	Introspection *Introspection
}

// A LoginClient is a client of the gateway at an issuer, with the redirect URI /login/return below
// [Options.PublicURL].
type LoginClient struct {
	ClientID, ClientSecret string // ClientSecret may be empty
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

// issuers returns all issuers whose tokens are accepted.
func (a *Auth) issuers() []*JWT {
	if a == nil {
		return nil
	}
	var all []*JWT
	if a.JWT != nil {
		all = append(all, a.JWT)
	}
	for i := range a.OtherIssuers {
		all = append(all, &a.OtherIssuers[i])
	}
	return all
}

// fault reports a token that could stand for a principal of another way; nil for none.
func (a *Auth) fault() error {
	for _, t := range a.Tokens {
		if (len(a.issuers()) > 0 || a.MTLS != nil) && strings.Contains(t.Name, ":") {
			return fmt.Errorf("token of %s: beside other ways a name has no colon", t.Name)
		}
	}
	return nil
}

// authenticator returns the authenticator that a describes; nil for nil. The Gateway starts
// and closes it.
func (b *build) authenticator(a *Auth) (auth.Authenticator, error) {
	if a == nil {
		return nil, nil
	}
	if err := a.fault(); err != nil {
		return nil, err
	}
	var o auth.WaysOptions
	if a.MTLS != nil {
		o.MTLS = new(auth.MTLS(*a.MTLS))
	}
	if len(a.Tokens) > 0 {
		for _, t := range a.Tokens {
			b.secrets.Learn(t.Token)
		}
		tokens, err := auth.NewTokens(a.tokens())
		if err != nil {
			return nil, err
		}
		o.Tokens = tokens
	}
	var err error
	if o.Issuers, err = b.resource(a.issuers()); err != nil {
		return nil, err
	}
	return auth.NewWays(o), nil
}

// resource returns what accepts the tokens of issuers; nil for none.
func (b *build) resource(issuers []*JWT) (auth.Resource, error) {
	var all []*auth.JWT
	for _, o := range issuers {
		j, err := b.jwt(o)
		if err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	several, err := auth.NewIssuers(all...)
	if err != nil {
		return nil, err
	}
	return several, nil
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

func (b *build) jwt(o *JWT) (*auth.JWT, error) {
	options := auth.JWTOptions{
		Issuer: o.Issuer, Audiences: o.Audience, Algorithms: o.Algorithms, Types: o.Types, Scopes: o.Scopes, PrincipalClaims: o.PrincipalClaims, Claims: b.policyClaims(),
		Client: b.fetching(o.Issuer), Logger: b.opts.Logger,
	}
	if o.Introspection != nil {
		options.Introspection = new(auth.Introspection(*o.Introspection))
		b.secrets.Learn(o.Introspection.ClientSecret)
	}
	return auth.NewJWT(options)
}

var errTwoAuthenticators = errors.New("mcpbridge: want one of Authenticator and Auth")
