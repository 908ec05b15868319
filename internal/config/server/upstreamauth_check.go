package server

import (
	"net/url"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An Endpoint is what credentials have to suit.
type Endpoint struct {
	Clients          *Auth // how its clients prove who they are; nil for not at all
	URL, PublicURL   string
	Isolation        settings.Isolation
	Era              string
	OverWebSocket    bool
	HasAuthorization bool   // as a header of its own
	OneUser          bool   // who has started the program
	Browsers         string // the public URL of the gateway, where browsers find its pages; empty for none
	HasLoginKeys     bool   // to keep logins of users with
}

// A credentialChecker checks the credentials for one server.
type credentialChecker struct {
	*UpstreamAuth
	of  *Endpoint
	rep *key.Report
}

// Check checks what is below path; nothing if a is nil.
func (a *UpstreamAuth) Check(rep *key.Report, path string, of *Endpoint) {
	if a == nil {
		return
	}
	c := credentialChecker{a, of, rep}
	ways := a.ways()
	switch {
	case len(ways) == 0:
		rep.Fail(path, "says nothing; write one of static, client_credentials, token_exchange, oauth and passthrough, or remove it")
	case len(ways) > 1:
		rep.Fail(path, "%s are both set; a request has one credential, so remove one of them", strings.Join(ways, " and "))
	case of.HasAuthorization:
		rep.Fail(path, "headers has Authorization, too; a request has one credential, so remove one of them")
	default:
		c.way(key.Join(path, ways[0]))
	}
}

// ways returns the names of the fields that are set, in order.
func (a *UpstreamAuth) ways() []string {
	var ways []string
	for name, set := range map[string]bool{"static": a.Static != nil, "client_credentials": a.ClientCredentials != nil, "token_exchange": a.TokenExchange != nil, "oauth": a.OAuth != nil, "passthrough": a.Passthrough != nil} {
		if set {
			ways = append(ways, name)
		}
	}
	slices.Sort(ways)
	return ways
}

// way checks the one way that is set.
func (c credentialChecker) way(path string) {
	switch {
	case c.Static != nil && (c.Static.Token == "" || strings.ContainsFunc(c.Static.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f })):
		c.rep.Fail(key.Join(path, "token"), "is no token: it is empty, or has characters that no header can hold")
	case c.ClientCredentials != nil:
		c.issuerClient(path, &c.ClientCredentials.AssertedClient)
	case c.TokenExchange != nil:
		c.issuerClient(path, &c.TokenExchange.AssertedClient)
		c.idJAG(key.Join(path, "id_jag"), c.TokenExchange.IDJAG)
		if c.of.Clients != nil && len(c.of.Clients.JWT) > 1 {
			c.rep.Fail(path, "sends the tokens of callers to one authorization server, and theirs are of several, which would see those of each other; give this server an auth of its own, with one issuer")
		}
		c.callers(path)
	case c.OAuth != nil:
		c.storedLogin(path)
	case c.Passthrough != nil:
		c.passthrough(path)
	}
}

// idJAG checks the client at an authorization server that takes grants; nothing if o is nil.
func (c credentialChecker) idJAG(path string, o *AssertedClient) {
	switch {
	case o == nil:
		return
	case o.Issuer == c.TokenExchange.Issuer:
		c.rep.Fail(key.Join(path, "issuer"), "is the identity provider itself, which issues tokens without a grant; remove id_jag")
	}
	c.issuerClient(path, o)
}

func (c credentialChecker) issuerClient(path string, o *AssertedClient) {
	c.issuer(key.Join(path, "issuer"), o.Issuer)
	switch {
	case o.ClientID == "":
		c.rep.Fail(path, "has no client_id; write the id that mcpbridge has at the issuer")
	case (o.ClientSecret == "") == (o.PrivateKey == ""):
		c.rep.Fail(path, "the client authenticates by one of client_secret and private_key; write one of them")
	}
}

// issuer checks the URL of an authorization server.
func (c credentialChecker) issuer(path, issuer string) {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !value.IsPrintable(issuer):
		c.rep.Fail(path, "is not the URL of an authorization server; write one such as https://id.example.com")
	case !value.Private(u):
		c.rep.Fail(path, "secrets are sent there; write one with https://")
	}
}

// callers checks a server that gets something of each caller's.
func (c credentialChecker) callers(path string) {
	switch {
	case c.of.Isolation == settings.IsolateNothing:
		c.rep.Fail(path, "sends a token of the caller's, and with isolation: shared all callers have one session; remove one of them")
	case c.of.Clients == nil || len(c.of.Clients.JWT) == 0:
		c.rep.Fail(path, "sends a token of the caller's, and clients of this server have none; write auth: {jwt: …}, or use client_credentials")
	case c.of.Era == spec.Unknown.String() || c.of.Era == "auto" || c.of.Era == settings.EraOfClient:
		c.rep.Fail(path, "mcpbridge has no token of its own to ask the server which era it is of; write era: legacy or era: modern")
	case c.of.OverWebSocket:
		c.rep.Fail(path, "sends a token of the caller's, and callers share a WebSocket; use client_credentials")
	}
}

func (c credentialChecker) storedLogin(path string) {
	o := c.OAuth
	if o.Issuer != "" {
		c.issuer(key.Join(path, "issuer"), o.Issuer)
	}
	c.pkce(key.Join(path, "pkce"))
	if o.Per != "" && c.of.OneUser { // whose own login it is
		o.Per = ""
	}
	of := o.Principal != "" || o.SharedIdentity || o.Per != "" || c.of.OneUser
	switch {
	case !of, o.Principal != "" && o.SharedIdentity, o.Per != "" && (o.Principal != "" || o.SharedIdentity):
		c.rep.Fail(path, "whose login is it? Write one of per: principal, where each logs in himself, principal: NAME for the only one who may use it, which is anonymous where clients are not authenticated, and shared_identity: true for everybody")
	case o.Per != "":
		c.perPrincipal(path)
	case c.of.Clients.NotOfCertificates(o.Principal) != "":
		c.rep.Fail(key.Join(path, "principal"), "no client is called that: certificates have mtls: before their names beside other ways, and only then; write %s", c.of.Clients.NotOfCertificates(o.Principal))
	case o.Principal != "" && (c.of.Isolation == settings.IsolateNothing || c.of.OverWebSocket):
		c.rep.Fail(path, "the login is one principal's, and all callers have one session; remove isolation: shared, or write shared_identity: true")
	case o.ClientSecret != "" && o.ClientID == "":
		c.rep.Fail(path, "has a client_secret without a client_id; write both")
	case o.SharedIdentity:
		c.rep.Warn(key.Join(path, "shared_identity"), "every client acts at the server as the person who has logged in")
	case o.Principal == "":
		o.SharedIdentity = true // with the only user there is
	}
}

// perPrincipal checks what logins of users need.
func (c credentialChecker) perPrincipal(path string) {
	here := key.Join(path, "per")
	switch {
	case c.of.Clients == nil || c.of.Clients.ways() == 0:
		c.rep.Fail(here, "each user logs in himself, and nothing says who the users are; write auth, or shared_identity: true instead of per")
	case c.of.Browsers == "":
		c.rep.Fail(here, "users log in on a page of mcpbridge, and nothing says where browsers find that; write public_url at the top, such as https://mcp.example.com")
	case !c.of.HasLoginKeys:
		c.rep.Fail(here, "logins are kept encrypted, and there is no key that outlasts a restart; write login_keys or state_keys, with a secret as from openssl rand -base64 32")
	case c.of.Isolation == settings.IsolateNothing:
		c.rep.Fail(here, "each user has a login of his own, and with isolation: shared all have one session; remove one of them")
	case c.of.Era == spec.Unknown.String() || c.of.Era == "auto" || c.of.Era == settings.EraOfClient:
		c.rep.Fail(here, "mcpbridge has no login of its own to ask the server which era it is of; write era: legacy or era: modern")
	case c.of.OverWebSocket:
		c.rep.Fail(here, "each user has a login of his own, and all share a WebSocket; remove per")
	case c.OAuth.CallbackPort != 0:
		c.rep.Fail(key.Join(path, "callback_port"), "browsers return to public_url, and not to a port of this machine; remove it")
	case c.OAuth.ClientSecret != "" && c.OAuth.ClientID == "":
		c.rep.Fail(path, "has a client_secret without a client_id; write both")
	}
}

// pkce warns of what is assumed, which has to be of one issuer: that of a server may be any.
//
// Spec: 2026-07-28, basic/authorization/security-considerations, Authorization Code
// Protection.
func (c credentialChecker) pkce(path string) {
	switch {
	case c.OAuth.PKCE != "assume":
	case c.OAuth.Issuer == "":
		c.rep.Fail(path, "assume is about one issuer that you know; write issuer, too")
	default:
		c.rep.Warn(path, "has a login go on although the issuer does not say that it supports PKCE, which the specification forbids: a login can be stolen if it ignores PKCE")
	}
}

// passthrough is refused unless the server and the gateway are one resource: the
// specification forbids to pass on a token that is for another.
//
// Spec: 2026-07-28, basic/authorization/security-considerations, Access Token Privilege
// Restriction.
func (c credentialChecker) passthrough(path string) {
	switch {
	case !c.Passthrough.SameResource:
		c.rep.Fail(path, "passes tokens of callers on, which the specification forbids unless the server and mcpbridge are the same resource; write same_resource: true if they are, or use token_exchange")
		return
	case c.of.PublicURL != c.of.URL:
		c.rep.Fail(path, "the server and mcpbridge are not the same resource: public_url of this server has to be its url, byte for byte; use token_exchange if they differ")
		return
	}
	c.callers(path)
	c.rep.Warn(path, "tokens of callers are passed on to the server")
}
