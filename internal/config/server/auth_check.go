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
	if a.Word == "" && a.ways() == 0 && !rep.Mistaken(path) {
		rep.Fail(path, "want at least one of tokens, jwt and mtls below it, or the word none")
	}
	checkTokens(rep, key.Join(path, "tokens"), a.Tokens)
	a.checkIssuers(rep, key.Join(path, "jwt"))
}

// ways returns how many ways clients have to prove who they are.
func (a *Auth) ways() (n int) {
	for _, set := range []bool{len(a.Tokens) > 0, len(a.JWT) > 0, a.MTLS != nil} {
		if set {
			n++
		}
	}
	return n
}

// NotOfCertificates returns how the principal is called that name is meant for, if it is the
// name in a certificate in a form that no principal has; empty otherwise. Beside other ways
// certificates have a prefix.
func (a *Auth) NotOfCertificates(name string) (rather string) {
	const prefix = "mtls:"
	switch {
	case a == nil || a.MTLS == nil:
	case a.ways() == 1 && strings.HasPrefix(name, prefix):
		return strings.TrimPrefix(name, prefix)
	case a.ways() > 1 && ofCertificate.MatchString(name):
		return prefix + name
	}
	return ""
}

// ofCertificate is the beginning of a name that mtls takes from a certificate.
var ofCertificate = regexp.MustCompile(`^(dns|email|uri|spiffe):`)

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

// PathOf returns the path of an issuer of which the tokens are accepted: jwt is a list, or one
// of what is in it.
func (a *Auth) PathOf(rep *key.Report, path string, i int) string {
	if here := key.Join(path, strconv.Itoa(i)); rep.Written(here) {
		return here
	}
	return path
}

func (a *Auth) checkIssuers(rep *key.Report, path string) {
	known := make(map[string]bool)
	asked := false
	for i := range a.JWT {
		j, here := &a.JWT[i], a.PathOf(rep, path, i)
		j.check(rep, here)
		switch {
		case j.Issuer != "" && known[j.Issuer]:
			rep.Fail(here, "%s is in the list already; write what you want of it in one place", j.Issuer)
		case j.Introspection != nil && asked:
			rep.Fail(key.Join(here, "introspection"), "another issuer has it, too: each would be sent the tokens of the other; keep it for the issuer whose tokens are not JWTs")
		}
		known[j.Issuer] = true
		asked = asked || j.Introspection != nil
	}
}

func (j *JWT) check(rep *key.Report, path string) {
	j.checkIssuer(rep, path)
	j.checkNames(rep, path)
	j.checkAudience(rep, key.Join(path, "audience"))
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
	case ofAnyTenant.MatchString(j.Issuer):
		rep.Fail(key.Join(path, "issuer"), "is that of all tenants, and no token has it; write the one with the id of your tenant, or a list with one for each tenant")
	}
}

// ofAnyTenant matches what Microsoft Entra ID publishes for applications of several tenants.
var ofAnyTenant = regexp.MustCompile(`^https://login\.microsoftonline\.com/(common|organizations|consumers|\{.*\}|%7[Bb].*)(/|$)`)

// forEverything are audiences that are in tokens for whatever the issuer's clients do: Keycloak's
// console for accounts, Auth0's userinfo, Microsoft Graph.
var forEverything = regexp.MustCompile(`^account$|/userinfo$|^(https://graph\.microsoft\.com/?|00000003-0000-0000-c000-000000000000)$`)

func (j *JWT) checkAudience(rep *key.Report, path string) {
	for i, text := range j.Audience {
		here := key.Join(path, strconv.Itoa(i))
		switch {
		case strings.TrimSpace(text) != text || text == "" || text == "*":
			rep.Fail(here, "%q is not what tokens have as aud, byte for byte", text)
		case forEverything.MatchString(text):
			rep.Fail(here, "%s is in tokens that are for something else, and every client of the issuer has some; have the issuer write the public URL, or a name for mcpbridge alone", text)
		}
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
		if !strings.EqualFold(name, "at+jwt") && !strings.EqualFold(name, "JWT") && name != "missing" {
			rep.Fail(key.Join(path, "types", strconv.Itoa(i)), "%q is not a type of access tokens; write at+jwt or JWT, or missing for tokens without one", name)
		}
	}
	for i, name := range j.PrincipalClaims {
		if name == "" || name == "iss" || name == "sub" {
			rep.Fail(key.Join(path, "principal_claims", strconv.Itoa(i)), "issuer and subject are part of the principal anyway; write another claim, such as client_id, or remove it")
		}
	}
}
