package gateway

import (
	"errors"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// UpstreamAuth says with which credentials requests are sent to a server. Exactly one field
// is set.
type UpstreamAuth struct {
	// Token is sent as a Bearer token.
	Token string
	// ClientCredentials gets tokens for the gateway itself.
	ClientCredentials *IssuerClient
	// TokenExchange gets a token for each caller's (RFC 8693).
	TokenExchange *IssuerClient
	// Login has the tokens of a login that was stored in Logins.Dir, or of each principal's own.
	Login *StoredLogin
	// Passthrough sends the caller's own token. The specification forbids it unless the
	// server and the gateway are the same resource.
	Passthrough bool
}

// An IssuerClient is the client that the gateway is at an authorization server. It
// authenticates by ClientSecret or PrivateKey.
type IssuerClient struct {
	Issuer       string // byte for byte as its metadata has it
	ClientID     string
	ClientSecret string
	PrivateKey   string   // a PEM text: RSA, P-256, P-384 or Ed25519
	KeyID        string   // the kid of PrivateKey; may be empty
	Scopes       []string // to ask for
	Resource     string   // to ask for; empty means the server's URL
	Audience     string   // to ask for in a token exchange; may be empty
	// IDJAG, in a token exchange, is the server's own authorization server, and the client there:
	// Issuer is an identity provider then, and issues grants for it
	// (draft-ietf-oauth-identity-assertion-authz-grant). Its Scopes, Resource, Audience and IDJAG
	// have no meaning.
	IDJAG *IssuerClient
}

// A StoredLogin is one that mcpbridge login has stored. Exactly one of Principal, SharedIdentity
// and PerPrincipal is set.
type StoredLogin struct {
	// Principal is the only one on whose behalf the login is used. SharedIdentity says
	// instead that everybody uses it.
	Principal      string
	SharedIdentity bool
	// PerPrincipal says instead that each principal has a login of its own, which it makes in a
	// browser, on a page below [Options.PublicURL]. Clients have to prove who they are.
	PerPrincipal bool

	Issuer                 string   // of those that the server names; empty means the first
	ClientID, ClientSecret string   // of a client that was registered by hand
	Scopes                 []string // to ask for, besides those that the server names
	CallbackPort           int      // zero means any
	// AssumePKCE has Issuer taken to support PKCE if it says nothing of that. The
	// specification forbids it: it is for an issuer that is known to do so. Issuer has to be
	// set, too.
	AssumePKCE bool
}

// Logins say how the gateway logs in to servers.
type Logins struct {
	// Dir is where logins are stored. Empty means nowhere.
	Dir string
	// UserDir is where those of PerPrincipal are, unless Replicas have an Engine, which all of
	// them share.
	UserDir string
	// Keys are secrets of at least 16 bytes, with which those of PerPrincipal are encrypted: the
	// first for new ones. Empty means [Options.StateKeys].
	Keys []string
	// Files keeps tokens in files of Dir even if the system has a keyring.
	Files bool
	// ClientMetadataURL is that of a client id metadata document.
	ClientMetadataURL string
	// AllowHosts are hosts with private addresses from which metadata may be read, and
	// tokens be issued, although the server has a public address.
	AllowHosts []string
}

// fault reports what is wrong with the credentials of a server; nil for nothing.
func (a *UpstreamAuth) fault(s *ServerOptions, set *settings.Server) error {
	switch {
	case count(a.Token != "", a.ClientCredentials != nil, a.TokenExchange != nil, a.Login != nil, a.Passthrough) != 1:
		return errors.New("want exactly one field of UpstreamAuth")
	case s.URL == "":
		return errors.New("UpstreamAuth is for a URL")
	case s.Header.Get("Authorization") != "":
		return errors.New("want one of UpstreamAuth and the header Authorization")
	case a.ofCallers() && set.KnownEra() == spec.Unknown:
		return errors.New("the gateway has no token with which to ask for the Era: want it set")
	case a.Login != nil && a.Login.AssumePKCE && a.Login.Issuer == "":
		return errors.New("AssumePKCE is about one Issuer: want it set")
	case a.Login != nil && count(a.Login.Principal != "", a.Login.SharedIdentity, a.Login.PerPrincipal) != 1:
		return errors.New("want exactly one of Principal, SharedIdentity and PerPrincipal")
	}
	return a.sharingFault(s, set)
}

// sharingFault reports that principals share what has the credential of one.
func (a *UpstreamAuth) sharingFault(s *ServerOptions, set *settings.Server) error {
	ofOne := a.Login != nil && a.Login.Principal != ""
	socket := strings.HasPrefix(s.URL, "ws:") || strings.HasPrefix(s.URL, "wss:")
	switch {
	case a.ofCallers() && set.Isolation == settings.IsolateNothing:
		return errors.New("callers have tokens of their own, and IsolateNothing one session for all")
	case ofOne && set.Isolation == settings.IsolateNothing:
		return errors.New("the login is one principal's, and IsolateNothing has one session for all")
	case socket && (a.ofCallers() || ofOne):
		return errors.New("callers share the WebSocket, and so its credential")
	}
	return nil
}

// ofCallers reports whether each caller has a credential of its own.
func (a *UpstreamAuth) ofCallers() bool {
	return a.TokenExchange != nil || a.Passthrough || a.perPrincipal()
}

// perPrincipal reports whether each principal has a login of its own.
func (a *UpstreamAuth) perPrincipal() bool {
	return a != nil && a.Login != nil && a.Login.PerPrincipal
}

// addCredentials makes those of a server; nil if it has none.
func (s serverBuild) addCredentials(p *serverParts) error {
	a := s.UpstreamAuth
	if a == nil {
		return nil
	}
	own, err := s.ownCredentials()
	switch {
	case err != nil:
		return err
	case own != nil:
		p.current = login.NewCurrent(own)
		p.credentials = p.current
		p.ends = append(p.ends, p.current.Close)
	case a.TokenExchange != nil:
		exchange, err := login.TokenExchange(s.issuerOptions(a.TokenExchange))
		if err != nil {
			return err
		}
		p.credentials = exchange
		p.ends = append(p.ends, exchange.Close)
	case a.perPrincipal():
		return s.addUserLogins(p)
	case a.Login != nil:
		p.login = s.storedLogin(a.Login)
		p.credentials = p.login
		p.ends = append(p.ends, p.login.Close)
	default:
		p.credentials = login.Passthrough()
	}
	return nil
}

// ownCredentials returns those that are the gateway's own, and so may be replaced while they
// are in use; nil if the server has none, or others.
func (s serverBuild) ownCredentials() (upstream.Credentials, error) {
	a := s.UpstreamAuth
	if a == nil {
		return nil, nil
	}
	if err := a.fault(s.ServerOptions, &s.set); err != nil {
		return nil, err
	}
	switch {
	case a.Token != "":
		s.b.secrets.Learn(a.Token)
		return login.Static(a.Token), nil
	case a.ClientCredentials != nil:
		return login.ClientCredentials(s.issuerOptions(a.ClientCredentials))
	}
	return nil, nil
}

func (s serverBuild) issuerOptions(c *IssuerClient) login.IssuerOptions {
	s.b.secrets.Learn(c.ClientSecret, c.PrivateKey)
	o := login.IssuerOptions{
		HTTP: s.b.fetching(c.Issuer), Issuer: c.Issuer, Resource: c.Resource, ClientID: c.ClientID, ClientSecret: c.ClientSecret,
		PrivateKey: c.PrivateKey, KeyID: c.KeyID, Scopes: c.Scopes, Audience: c.Audience, Secrets: s.b.secrets,
	}
	if u, err := url.Parse(s.URL); o.Resource == "" && err == nil {
		o.Resource = login.Canonical(u)
	}
	if c.IDJAG != nil {
		o.IDJAG = new(s.issuerOptions(c.IDJAG))
	}
	return o
}

// fetching returns what fetches on behalf of configured URLs.
func (b *build) fetching(near ...string) *fetch.Client {
	return fetch.New(fetch.Options{Near: near, AllowHosts: b.opts.Logins.AllowHosts})
}

// fetchingFor returns what fetches on behalf of a server, and an issuer that is configured
// for it. The server's own documents may need the server's own TLS configuration.
func (s serverBuild) fetchingFor(issuer string) *fetch.Client {
	return fetch.New(fetch.Options{Near: []string{s.URL, issuer}, AllowHosts: s.b.opts.Logins.AllowHosts, Server: s.URL, TLS: s.TLS})
}

func (s serverBuild) storedLogin(l *StoredLogin) *login.Stored {
	s.b.secrets.Learn(l.ClientSecret)
	f := s.loginFlow()
	o := login.StoredOptions{Server: withoutQuery(s.URL), HTTP: f.HTTP, Keeper: f.Store.KeeperOf(s.URL), Principal: mcp.Principal(l.Principal), Secrets: s.b.secrets,
		Logger: s.b.opts.Logger.With("upstream", s.Name)}
	if f.Browse = s.b.opts.hooks.Browse[s.Name]; f.Browse != nil {
		o.Flow = f
	}
	if s.b.opts.hooks.FromFile {
		o.Server = s.Name + " -c FILE"
	}
	return login.NewStored(o)
}

// loginFlow returns what logs in to a server, without a browser.
func (s serverBuild) loginFlow() *login.Flow {
	l := StoredLogin{}
	if s.UpstreamAuth != nil && s.UpstreamAuth.Login != nil {
		l = *s.UpstreamAuth.Login
	}
	o, assumed := &s.b.opts.Logins, ""
	if l.AssumePKCE {
		assumed = l.Issuer
	}
	return &login.Flow{
		URL: s.URL, Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret, MetadataURL: o.ClientMetadataURL, Scopes: l.Scopes, Port: l.CallbackPort,
		AssumePKCE: assumed, Tell: func(text string) { s.b.opts.Logger.Warn(text, "upstream", s.Name) },
		HTTP: s.fetchingFor(l.Issuer), Store: login.OpenStore(login.StoreOptions{Dir: o.Dir, NoKeyring: o.Files, Logger: s.b.opts.Logger}),
	}
}

// visitOf returns where people can log in to a server; nil for one without logins.
func visitOf(p *serverParts) func() *mcp.Visit {
	if p.login == nil {
		return nil
	}
	return p.login.Visit
}

// sawCaller returns what is told of callers' credentials; nil if nobody wants to know.
func sawCaller(c upstream.Credentials) func(*mcp.Identity) {
	if callers, ok := c.(upstream.CallerCredentials); ok {
		return callers.Saw
	}
	return nil
}

// withoutQuery returns a URL without its query, which may be a secret.
func withoutQuery(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}
