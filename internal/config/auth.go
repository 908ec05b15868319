package config

import (
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/form"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// Auth says how clients prove who they are. One field is set.
type Auth struct {
	// Word is none where all clients are anonymous, and empty otherwise.
	Word   string  `koanf:"word"`
	Tokens []Token `koanf:"tokens" doc:"tokens that clients send, one for each client"`
	JWT    *JWT    `koanf:"jwt" doc:"access tokens of an OAuth issuer"`
	MTLS   *MTLS   `koanf:"mtls" doc:"client certificates, which tls.client_ca verifies"`
}

// A Token is one that a client sends. Either Token or SHA256 is set.
type Token struct {
	Name   string   `koanf:"name" secret:"no" doc:"the principal: whom the token stands for"`
	Token  string   `koanf:"token" doc:"the token, of 16 characters at least; mcpbridge token makes one"`
	SHA256 string   `koanf:"sha256" doc:"the SHA-256 of the token instead, in hexadecimal"`
	Scopes []string `koanf:"scopes" doc:"what a policy may ask for"`
}

// JWT says whose access tokens are accepted, and which.
type JWT struct {
	Issuer          string         `koanf:"issuer" secret:"no" doc:"the issuer, byte for byte as its tokens have it; its keys come from its metadata"`
	Algorithms      []string       `koanf:"algorithms" doc:"signatures to accept; all asymmetric ones by default"`
	Types           []string       `koanf:"types" doc:"the typ of access tokens; at+jwt by default, JWT for issuers that know no other"`
	Scopes          []string       `koanf:"scopes" doc:"scopes that every request needs"`
	PrincipalClaims []string       `koanf:"principal_claims" doc:"claims that are part of the principal beside issuer and subject, as client_id"`
	Introspection   *Introspection `koanf:"introspection" doc:"asks the issuer about tokens that are not JWTs"`
}

// Introspection is how the gateway asks the issuer about a token.
type Introspection struct {
	ClientID     string `koanf:"client_id" secret:"no" doc:"the gateway's own client at the issuer"`
	ClientSecret string `koanf:"client_secret" doc:"its secret"`
}

// MTLS says what of a certificate is the principal.
type MTLS struct {
	Principal string `koanf:"principal" default:"san" enum:"san spiffe" doc:"the first subject alternative name, or the SPIFFE ID"`
}

// secrets returns what clients and the gateway prove themselves with.
func (a *Auth) secrets() []string {
	if a == nil {
		return nil
	}
	var out []string
	for _, t := range a.Tokens {
		out = append(out, t.Token)
	}
	if a.JWT != nil && a.JWT.Introspection != nil {
		out = append(out, a.JWT.Introspection.ClientSecret)
	}
	return out
}

// anonymous reports whether an endpoint serves anonymous clients: because that was written,
// or because nothing was.
func (cfg *Config) anonymous() (written, unsaid bool) {
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; !s.Disabled {
			a := cfg.AuthOf(s)
			written = written || a != nil && a.Word != ""
			unsaid = unsaid || a == nil
		}
	}
	return written, unsaid
}

// AuthOf returns how clients of a server prove who they are; nil for not at all.
func (cfg *Config) AuthOf(s *Server) *Auth {
	if s.Auth != nil {
		return s.Auth
	}
	return cfg.Auth
}

// PublicURLOf returns the URL by which clients know a server; empty if it is not known.
func (cfg *Config) PublicURLOf(s *Server) string {
	if s.PublicURL != "" || cfg.PublicURL == "" {
		return s.PublicURL
	}
	return strings.TrimSuffix(cfg.PublicURL, "/") + "/mcp/" + s.Name
}

// auth checks what says who clients are.
func (c *checker) auth(cfg *Config) {
	c.publicURL("public_url", cfg.PublicURL)
	c.authAt("auth", cfg.Auth)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		path := keypath.Join("servers", s.Name)
		if s.Disabled {
			continue
		}
		c.publicURL(keypath.Join(path, "public_url"), s.PublicURL)
		c.authAt(keypath.Join(path, "auth"), s.Auth)
		if a := cfg.AuthOf(s); a != nil && a.JWT != nil && cfg.PublicURLOf(s) == "" {
			c.rep.Fail(path, "its clients send access tokens, which are for one URL, and nothing says which; write public_url: https://mcp.example.com, where clients find mcpbridge")
		}
	}
}

// publicURL checks a URL by which clients know an endpoint, or what its URL begins with.
func (c *checker) publicURL(path, text string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.ContainsAny(text, "?#\\\"") || u.Opaque != "" || !form.IsPrintable(text):
		c.rep.Fail(path, "is not a URL of clients; write one such as https://mcp.example.com, without a query")
	case !form.Private(u):
		c.rep.Fail(path, "clients send their credentials there; write https://%s", u.Host)
	}
}

func (c *checker) authAt(path string, a *Auth) {
	if a == nil {
		return
	}
	ways := 0
	for _, set := range []bool{a.Word != "", len(a.Tokens) > 0, a.JWT != nil, a.MTLS != nil} {
		if set {
			ways++
		}
	}
	if ways != 1 && !c.rep.Mistaken(path) {
		c.rep.Fail(path, "want exactly one of tokens, jwt and mtls below it, or the word none")
	}
	c.tokens(keypath.Join(path, "tokens"), a.Tokens)
	if a.JWT != nil {
		c.jwt(keypath.Join(path, "jwt"), a.JWT)
	}
}

// minToken is the shortest token that is a secret, in bytes.
const minToken = 16

var principalForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$`)

// IsPrincipal reports whether a token can stand for a principal of that name.
func IsPrincipal(name string) bool { return principalForm.MatchString(name) && name != "anonymous" }

// tokens never shows a token.
func (c *checker) tokens(path string, all []Token) {
	names := make(map[string]bool)
	for i, t := range all {
		here := keypath.Join(path, strconv.Itoa(i))
		digest, err := hex.DecodeString(t.SHA256)
		switch {
		case c.rep.Mistaken(here): // so that what was meant is not missed, too
		case !IsPrincipal(t.Name):
			c.rep.Fail(here, "name says whom the token stands for; use letters, digits and ._@+-, at most 128, and not the word anonymous")
		case names[t.Name]:
			c.rep.Fail(here, "%s has a token already; give each client a name of its own", t.Name)
		case (t.Token == "") == (t.SHA256 == ""):
			c.rep.Fail(here, "want either token or sha256; mcpbridge token prints both")
		case t.SHA256 != "" && (err != nil || len(digest) != 32):
			c.rep.Fail(here, "sha256 is not a SHA-256; write 64 hexadecimal digits, as mcpbridge token prints them")
		case t.Token != "" && len(t.Token) < minToken:
			c.rep.Fail(here, "token is shorter than %d characters; write one that mcpbridge token makes", minToken)
		case t.Token != "" && !tokenForm.MatchString(t.Token):
			c.rep.Fail(here, "token has characters that no Authorization header can; write one that mcpbridge token makes")
		}
		names[t.Name] = true
		c.scopes(keypath.Join(here, "scopes"), t.Scopes)
	}
}

// tokenForm is that of a token in a header. Spec: RFC 6750, 2.1.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// scopeForm is that of a scope. Spec: RFC 6749, 3.3.
var scopeForm = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`)

func (c *checker) scopes(path string, scopes []string) {
	for i, scope := range scopes {
		if !scopeForm.MatchString(scope) {
			c.rep.Fail(keypath.Join(path, strconv.Itoa(i)), "%q is not a scope; write one without spaces and quotes", scope)
		}
	}
}

// asymmetric are the algorithms whose keys an issuer can publish.
//
// Spec: RFC 7518, 3.1; RFC 8037.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (c *checker) jwt(path string, j *JWT) {
	c.jwtIssuer(path, j)
	c.jwtNames(path, j)
	c.scopes(keypath.Join(path, "scopes"), j.Scopes)
	if in := j.Introspection; in != nil && (in.ClientID == "" || in.ClientSecret == "") {
		c.rep.Fail(keypath.Join(path, "introspection"), "needs client_id and client_secret: issuers answer only clients that they know")
	}
}

func (c *checker) jwtIssuer(path string, j *JWT) {
	u, err := url.Parse(j.Issuer)
	switch {
	case j.Issuer == "":
		c.rep.Fail(path, "lacks issuer; write the URL that tokens have as iss")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !form.IsPrintable(j.Issuer):
		c.rep.Fail(keypath.Join(path, "issuer"), "is not a URL of an issuer; write one such as https://id.example.com")
	case !form.Private(u):
		c.rep.Fail(keypath.Join(path, "issuer"), "its keys have to come over https; write https://%s", u.Host)
	}
}

// jwtNames checks the names of algorithms, types and claims.
func (c *checker) jwtNames(path string, j *JWT) {
	for i, name := range j.Algorithms {
		if !slices.Contains(asymmetric, name) {
			c.rep.Fail(keypath.Join(path, "algorithms", strconv.Itoa(i)), "%q is not an algorithm of a public key; write %s", name, problem.Either(asymmetric))
		}
	}
	for i, name := range j.Types {
		if !strings.EqualFold(name, "at+jwt") && !strings.EqualFold(name, "JWT") {
			c.rep.Fail(keypath.Join(path, "types", strconv.Itoa(i)), "%q is not a type of access tokens; write at+jwt or JWT", name)
		}
	}
	for i, name := range j.PrincipalClaims {
		if name == "" || name == "iss" || name == "sub" {
			c.rep.Fail(keypath.Join(path, "principal_claims", strconv.Itoa(i)), "issuer and subject are part of the principal anyway; write another claim, such as client_id, or remove it")
		}
	}
}
