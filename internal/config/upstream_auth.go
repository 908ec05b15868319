package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/expand"
	"github.com/mcpbridge/mcpbridge/internal/config/form"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// UpstreamAuth says with which credentials requests are sent to a server. One field is set.
type UpstreamAuth struct {
	Static            *StaticCredential `koanf:"static" doc:"a token from the configuration"`
	ClientCredentials *ClientGrant      `koanf:"client_credentials" doc:"a token of mcpbridge itself from an authorization server"`
	TokenExchange     *ExchangeGrant    `koanf:"token_exchange" doc:"a token for the server in exchange for that of the caller (RFC 8693)"`
	OAuth             *StoredLogin      `koanf:"oauth" doc:"the login that mcpbridge login stored"`
	Passthrough       *Passthrough      `koanf:"passthrough" doc:"the caller's own token, if the server and mcpbridge are the same resource"`
}

// StaticCredential is a token.
type StaticCredential struct {
	Token string `koanf:"token" doc:"the Bearer token"`
}

// An IssuerClient is the client that mcpbridge is at an authorization server. It
// authenticates by ClientSecret or PrivateKey.
type IssuerClient struct {
	Issuer       string   `koanf:"issuer" secret:"no" doc:"issuer URL of the authorization server, exactly as in its metadata"`
	ClientID     string   `koanf:"client_id" secret:"no" doc:"client ID of mcpbridge at the issuer"`
	ClientSecret string   `koanf:"client_secret" doc:"client secret"`
	PrivateKey   string   `koanf:"private_key" secret:"no" doc:"PEM file of the client's private key, instead of a secret (private_key_jwt), relative to the configuration"`
	KeyID        string   `koanf:"key_id" secret:"no" doc:"kid header of assertions; none by default"`
	Scopes       []string `koanf:"scopes" doc:"scopes to request"`
	Resource     string   `koanf:"resource" secret:"no" doc:"resource to request a token for; the server's URL by default"`

	// Key is the text of PrivateKey.
	Key string `koanf:"-"`
}

// A ClientGrant asks for tokens for mcpbridge itself.
type ClientGrant struct {
	IssuerClient `koanf:",squash"`
}

// An ExchangeGrant asks for a token for each caller's.
type ExchangeGrant struct {
	IssuerClient `koanf:",squash"`
	Audience     string `koanf:"audience" secret:"no" doc:"audience to request, in addition to resource"`
}

// A StoredLogin is one that mcpbridge login has stored.
type StoredLogin struct {
	Principal      string   `koanf:"principal" secret:"no" doc:"the only principal that may use the login"`
	SharedIdentity bool     `koanf:"shared_identity" default:"false" doc:"whether all clients use the login, instead of one principal"`
	Issuer         string   `koanf:"issuer" secret:"no" doc:"authorization server to use, if the server names several; the first by default"`
	ClientID       string   `koanf:"client_id" secret:"no" doc:"client ID of a client that was registered manually"`
	ClientSecret   string   `koanf:"client_secret" doc:"its client secret, if it has one"`
	Scopes         []string `koanf:"scopes" doc:"scopes to request in addition to those that the server names"`
	CallbackPort   int64    `koanf:"callback_port" default:"0" max:"65535" doc:"loopback port of the redirect URI; 0 is any"`
}

// Passthrough sends the caller's own token.
type Passthrough struct {
	SameResource bool `koanf:"same_resource" doc:"must be true: the server and mcpbridge are the same resource"`
}

// secrets returns the secrets of a server's credentials.
func (a *UpstreamAuth) secrets() []string {
	if a == nil {
		return nil
	}
	var out []string
	if a.Static != nil {
		out = append(out, a.Static.Token)
	}
	if a.ClientCredentials != nil {
		out = append(out, a.ClientCredentials.ClientSecret, a.ClientCredentials.Key)
	}
	if a.TokenExchange != nil {
		out = append(out, a.TokenExchange.ClientSecret, a.TokenExchange.Key)
	}
	if a.OAuth != nil {
		out = append(out, a.OAuth.ClientSecret)
	}
	return out
}

// keys returns the clients that may have a private key, with their keys.
func (a *UpstreamAuth) keys() map[string]*IssuerClient {
	out := make(map[string]*IssuerClient)
	if a != nil && a.ClientCredentials != nil {
		out["client_credentials"] = &a.ClientCredentials.IssuerClient
	}
	if a != nil && a.TokenExchange != nil {
		out["token_exchange"] = &a.TokenExchange.IssuerClient
	}
	return out
}

// maxKeyFile bounds a file with a private key, in bytes.
const maxKeyFile = 64 << 10

// readKeys reads the private keys of what is below path.
func (a *UpstreamAuth) readKeys(sc *expand.Scope, rep *problem.Report, path string) {
	for way, client := range a.keys() {
		if client.PrivateKey == "" {
			continue
		}
		here := keypath.Join(path, way, "private_key")
		client.PrivateKey = sc.PathOf(rep, here, client.PrivateKey)
		text, err := sc.Read(client.PrivateKey, maxKeyFile)
		if err != nil {
			rep.Fail(here, "%v", err)
			continue
		}
		client.Key = string(text)
	}
}

// logins checks what logins at servers have in common.
func (c *checker) logins(cfg *Config) {
	if u, err := url.Parse(cfg.ClientMetadataURL); cfg.ClientMetadataURL != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") == "" || u.Fragment != "" || !form.IsPrintable(cfg.ClientMetadataURL)) {
		c.rep.Fail("client_metadata_url", "is not the URL of a document; write one such as https://mcp.example.com/client.json, which begins with https:// and has a path")
	}
	for i, h := range cfg.AllowHosts {
		if !form.IsHost(h) {
			c.rep.Fail(keypath.Join("allow_hosts", strconv.Itoa(i)), "%q is not a host name; write one such as id.corp.example, without a port", h)
		}
	}
}

// upstreamAuth checks with which credentials requests are sent to a server.
func (c *checker) upstreamAuth(cfg *Config, s *Server) {
	a, path := s.UpstreamAuth, keypath.Join("servers", s.Name, "upstream_auth")
	if a == nil {
		return
	}
	var ways []string
	for name, set := range map[string]bool{"static": a.Static != nil, "client_credentials": a.ClientCredentials != nil, "token_exchange": a.TokenExchange != nil, "oauth": a.OAuth != nil, "passthrough": a.Passthrough != nil} {
		if set {
			ways = append(ways, name)
		}
	}
	slices.Sort(ways)
	switch {
	case len(ways) == 0:
		c.rep.Fail(path, "says nothing; write one of static, client_credentials, token_exchange, oauth and passthrough, or remove it")
	case len(ways) > 1:
		c.rep.Fail(path, "%s are both set; a request has one credential, so remove one of them", strings.Join(ways, " and "))
	case s.HasHeader("Authorization"):
		c.rep.Fail(path, "headers has Authorization, too; a request has one credential, so remove one of them")
	default:
		c.upstreamWay(cfg, s, keypath.Join(path, ways[0]))
	}
}

// HasHeader reports whether a header is configured for a server.
func (s *Server) HasHeader(name string) bool {
	for h := range s.Headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// upstreamWay checks the one way that is set.
func (c *checker) upstreamWay(cfg *Config, s *Server, path string) {
	a := s.UpstreamAuth
	switch {
	case a.Static != nil && (a.Static.Token == "" || strings.ContainsFunc(a.Static.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f })):
		c.rep.Fail(keypath.Join(path, "token"), "is no token: it is empty, or has characters that no header can hold")
	case a.ClientCredentials != nil:
		c.issuerClient(path, &a.ClientCredentials.IssuerClient)
	case a.TokenExchange != nil:
		c.issuerClient(path, &a.TokenExchange.IssuerClient)
		c.callers(cfg, s, path)
	case a.OAuth != nil:
		c.storedLogin(s, path)
	case a.Passthrough != nil:
		c.passthrough(cfg, s, path)
	}
}

func (c *checker) issuerClient(path string, o *IssuerClient) {
	c.issuer(keypath.Join(path, "issuer"), o.Issuer)
	switch {
	case o.ClientID == "":
		c.rep.Fail(path, "has no client_id; write the id that mcpbridge has at the issuer")
	case (o.ClientSecret == "") == (o.PrivateKey == ""):
		c.rep.Fail(path, "the client authenticates by one of client_secret and private_key; write one of them")
	}
}

// issuer checks the URL of an authorization server.
func (c *checker) issuer(path, issuer string) {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !form.IsPrintable(issuer):
		c.rep.Fail(path, "is not the URL of an authorization server; write one such as https://id.example.com")
	case !form.Private(u):
		c.rep.Fail(path, "secrets are sent there; write one with https://")
	}
}

// callers checks a server that gets something of each caller's.
func (c *checker) callers(cfg *Config, s *Server, path string) {
	auth := cfg.AuthOf(s)
	switch {
	case s.Isolation == "shared":
		c.rep.Fail(path, "sends a token of the caller's, and with isolation: shared all callers have one session; remove one of them")
	case auth == nil || auth.JWT == nil:
		c.rep.Fail(path, "sends a token of the caller's, and clients of this server have none; write auth: {jwt: …}, or use client_credentials")
	case s.Era == spec.Unknown.String() || s.Era == "auto":
		c.rep.Fail(path, "mcpbridge has no token of its own to ask the server which era it is of; write era: legacy or era: modern")
	case s.OverWebSocket():
		c.rep.Fail(path, "sends a token of the caller's, and callers share a WebSocket; use client_credentials")
	}
}

func (c *checker) storedLogin(s *Server, path string) {
	o := s.UpstreamAuth.OAuth
	if o.Issuer != "" {
		c.issuer(keypath.Join(path, "issuer"), o.Issuer)
	}
	of := o.Principal != "" || o.SharedIdentity || c.oneUser
	switch {
	case !of, o.Principal != "" && o.SharedIdentity:
		c.rep.Fail(path, "whose login is it? Write principal: NAME for the only one who may use it, which is anonymous where clients are not authenticated, or shared_identity: true for everybody")
	case o.Principal != "" && (s.Isolation == "shared" || s.OverWebSocket()):
		c.rep.Fail(path, "the login is one principal's, and all callers have one session; remove isolation: shared, or write shared_identity: true")
	case o.ClientSecret != "" && o.ClientID == "":
		c.rep.Fail(path, "has a client_secret without a client_id; write both")
	case o.SharedIdentity:
		c.rep.Warn(keypath.Join(path, "shared_identity"), "every client acts at the server as the person who has logged in")
	case o.Principal == "":
		o.SharedIdentity = true // with the only user there is
	}
}

// passthrough is refused unless the server and the gateway are one resource: the
// specification forbids to pass on a token that is for another.
//
// Spec: 2026-07-28, basic/authorization/security-considerations, Access Token Privilege
// Restriction.
func (c *checker) passthrough(cfg *Config, s *Server, path string) {
	here := s.PublicURL
	if here == "" && cfg.PublicURL != "" {
		here = strings.TrimSuffix(cfg.PublicURL, "/") + "/mcp/" + s.Name
	}
	switch {
	case !s.UpstreamAuth.Passthrough.SameResource:
		c.rep.Fail(path, "passes tokens of callers on, which the specification forbids unless the server and mcpbridge are the same resource; write same_resource: true if they are, or use token_exchange")
		return
	case here != s.URL:
		c.rep.Fail(path, "the server and mcpbridge are not the same resource: public_url of this server has to be its url, byte for byte; use token_exchange if they differ")
		return
	}
	c.callers(cfg, s, path)
	c.rep.Warn(path, "tokens of callers are passed on to the server")
}
