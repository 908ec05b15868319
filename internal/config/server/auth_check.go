package server

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// CheckPublicURL checks a URL by which clients know an endpoint, or what its URL begins with.
func CheckPublicURL(rep *key.Report, path, text string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.ContainsAny(text, "?#\\\"") || u.Opaque != "" || !value.IsPrintable(text):
		rep.Fail(path, "is not a URL of clients; write one such as https://mcp.example.com, without a query")
	case !value.Private(u):
		rep.Fail(path, "clients send their credentials there; write https://%s", u.Host)
	}
}

// Check checks what is below path; nothing if a is nil. Its errors never contain a secret.
func (a *Auth) Check(rep *key.Report, path string) {
	if a == nil {
		return
	}
	ways := 0
	for _, set := range []bool{a.Word != "", len(a.Tokens) > 0, a.JWT != nil, a.MTLS != nil} {
		if set {
			ways++
		}
	}
	if ways != 1 && !rep.Mistaken(path) {
		rep.Fail(path, "want exactly one of tokens, jwt and mtls below it, or the word none")
	}
	checkTokens(rep, key.Join(path, "tokens"), a.Tokens)
	if a.JWT != nil {
		a.JWT.check(rep, key.Join(path, "jwt"))
	}
}

// minToken is the shortest token that is a secret, in bytes.
const minToken = 16

func checkTokens(rep *key.Report, path string, all []Token) {
	for i, t := range all {
		here := key.Join(path, strconv.Itoa(i))
		digest, err := hex.DecodeString(t.SHA256)
		switch {
		case rep.Mistaken(here): // so that what was meant is not missed, too
		case !value.IsPrincipal(t.Name):
			rep.Fail(here, "name says whom the token stands for; use letters, digits and ._@+-, at most 128, and not the word anonymous")
		case (t.Token == "") == (t.SHA256 == ""):
			rep.Fail(here, "want either token or sha256; mcpbridge token prints both")
		case t.SHA256 != "" && (err != nil || len(digest) != 32):
			rep.Fail(here, "sha256 is not a SHA-256; write 64 hexadecimal digits, as mcpbridge token prints them")
		case t.Token != "" && len(t.Token) < minToken:
			rep.Fail(here, "token is shorter than %d characters; write one that mcpbridge token makes", minToken)
		case t.Token != "" && !tokenForm.MatchString(t.Token):
			rep.Fail(here, "token has characters that no Authorization header can; write one that mcpbridge token makes")
		}
		checkScopes(rep, key.Join(here, "scopes"), t.Scopes)
	}
	checkOwners(rep, path, all)
}

// checkOwners checks that no token is there twice. A name may have several, so that they can
// be exchanged one after another.
func checkOwners(rep *key.Report, path string, all []Token) {
	first := make(map[string]int) // by digest, the index of the token that has it
	for i, t := range all {
		here := key.Join(path, strconv.Itoa(i))
		if rep.Mistaken(here) {
			continue
		}
		switch before, known := first[t.digest()]; {
		case !known:
			first[t.digest()] = i
		case all[before].Name == t.Name:
			rep.Fail(here, "is the token of %s that stands in %s, too; remove one", t.Name, key.Shown(key.Join(path, strconv.Itoa(before))))
		default:
			rep.Fail(here, "the token of %s is that of %s, too: a token says who sends it; give each name one of its own", t.Name, all[before].Name)
		}
	}
}

// digest returns the SHA-256 of the token, in hexadecimal.
func (t *Token) digest() string {
	if t.SHA256 != "" {
		return strings.ToLower(t.SHA256)
	}
	sum := sha256.Sum256([]byte(t.Token))
	return hex.EncodeToString(sum[:])
}

// tokenForm is that of a token in a header. Spec: RFC 6750, 2.1.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// scopeForm is that of a scope. Spec: RFC 6749, 3.3.
var scopeForm = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`)

func checkScopes(rep *key.Report, path string, scopes []string) {
	for i, scope := range scopes {
		if !scopeForm.MatchString(scope) {
			rep.Fail(key.Join(path, strconv.Itoa(i)), "%q is not a scope; write one without spaces and quotes", scope)
		}
	}
}

// asymmetric are the algorithms whose keys an issuer can publish.
//
// Spec: RFC 7518, 3.1; RFC 8037.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (j *JWT) check(rep *key.Report, path string) {
	j.checkIssuer(rep, path)
	j.checkNames(rep, path)
	checkScopes(rep, key.Join(path, "scopes"), j.Scopes)
	if in := j.Introspection; in != nil && (in.ClientID == "" || in.ClientSecret == "") {
		rep.Fail(key.Join(path, "introspection"), "needs client_id and client_secret: issuers answer only clients that they know")
	}
}

func (j *JWT) checkIssuer(rep *key.Report, path string) {
	u, err := url.Parse(j.Issuer)
	switch {
	case j.Issuer == "":
		rep.Fail(path, "lacks issuer; write the URL that tokens have as iss")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !value.IsPrintable(j.Issuer):
		rep.Fail(key.Join(path, "issuer"), "is not a URL of an issuer; write one such as https://id.example.com")
	case !value.Private(u):
		rep.Fail(key.Join(path, "issuer"), "its keys have to come over https; write https://%s", u.Host)
	}
}

// checkNames checks the names of algorithms, types and claims.
func (j *JWT) checkNames(rep *key.Report, path string) {
	for i, name := range j.Algorithms {
		if !slices.Contains(asymmetric, name) {
			rep.Fail(key.Join(path, "algorithms", strconv.Itoa(i)), "%q is not an algorithm of a public key; write %s", name, key.Either(asymmetric))
		}
	}
	for i, name := range j.Types {
		if !strings.EqualFold(name, "at+jwt") && !strings.EqualFold(name, "JWT") {
			rep.Fail(key.Join(path, "types", strconv.Itoa(i)), "%q is not a type of access tokens; write at+jwt or JWT", name)
		}
	}
	for i, name := range j.PrincipalClaims {
		if name == "" || name == "iss" || name == "sub" {
			rep.Fail(key.Join(path, "principal_claims", strconv.Itoa(i)), "issuer and subject are part of the principal anyway; write another claim, such as client_id, or remove it")
		}
	}
}
