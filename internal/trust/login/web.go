package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// A WebFlow logs people in whose browser returns to a page of this program, and not to a port of
// their machine; [Flow] is the other one. It keeps nothing of a login that is under way: whoever
// has its [Errand] finishes it, such as another replica. HTTP, Redirect and Clients are required.
type WebFlow struct {
	HTTP *fetch.Client
	// URL is that of the server. Empty means that Issuer and Resource say all.
	URL string
	// Issuer is the authorization server to use; of those that the server names, if there is
	// one. Empty means the first of these.
	Issuer string
	// Resource is what tokens are for, without a URL.
	Resource string

	// ClientID and ClientSecret are those of a client that was registered by hand.
	ClientID, ClientSecret string
	// Document is the URL of a client id metadata document with Redirect; empty for none.
	Document string
	// Scopes are requested in addition to those that the server names.
	Scopes []string
	// AssumePKCE and Tell are those of a [Flow].
	AssumePKCE string
	Tell       func(text string)

	// Redirect is the URL of the page to which the browser returns.
	Redirect string
	Clients  Clients
}

// Clients keep the clients that were registered on the way, at each authorization server one.
type Clients interface {
	// Client returns nil if there is none.
	Client(ctx context.Context, issuer string) (*Client, error)
	KeepClient(ctx context.Context, issuer string, c *Client) error
	// DropClient discards a client, if it is the one that is kept.
	DropClient(ctx context.Context, issuer, id string) error
	// Lock waits for a lock that only one has who changes the client of an authorization server:
	// all three methods are called with it, but for a look.
	Lock(ctx context.Context, issuer string) (unlock func(), err error)
}

// An Errand is a login that is under way, while the browser is at the authorization server. It is
// secret.
type Errand struct {
	Issuer   string   `json:"i"`
	Resource string   `json:"r"`
	ClientID string   `json:"c"`
	State    string   `json:"s"`
	Verifier string   `json:"v"`
	Scopes   []string `json:"o,omitempty"`
}

// flow returns what both flows have in common.
func (w *WebFlow) flow() *Flow {
	return &Flow{URL: w.URL, HTTP: w.HTTP, Issuer: w.Issuer, Scopes: w.Scopes, AssumePKCE: w.AssumePKCE, Tell: w.Tell}
}

// Begin returns where to send the browser. state has to be one that nobody can guess, and is in
// its answer; more are further scopes.
//
// Spec: 2026-07-28, basic/authorization, Authorization Flow Steps; RFC 9700, 2.1.
func (w *WebFlow) Begin(ctx context.Context, state string, more []string) (*Errand, string, error) {
	as, e, err := w.errand(ctx, more)
	if err != nil {
		return nil, "", err
	}
	c, err := w.asking(ctx, as)
	if err != nil {
		return nil, "", err
	}
	e.ClientID, e.State, e.Verifier = c.ID, state, oauth2.GenerateVerifier()
	return e, authorizationURL(as, c.ID, w.Redirect, e.Resource, e.Scopes, e.State, e.Verifier), nil
}

// errand finds the authorization server, and returns an errand there.
func (w *WebFlow) errand(ctx context.Context, more []string) (*authServer, *Errand, error) {
	f := w.flow()
	if w.URL == "" {
		as, err := discoverIssuer(ctx, w.HTTP, w.Issuer)
		if err == nil {
			err = f.checkPKCE(as)
		}
		return as, &Errand{Issuer: w.Issuer, Resource: w.Resource, Scopes: union(w.Scopes, more)}, err
	}
	server, err := url.Parse(w.URL)
	if err != nil || server.Host == "" {
		return nil, nil, errors.New("it is not a URL")
	}
	if err := w.HTTP.Check(ctx, w.URL); err != nil {
		return nil, nil, err // tokens would be sent there unencrypted
	}
	_, challenge, err := f.Ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, as, err := f.discover(ctx, server, challenge, nil)
	if err != nil {
		return nil, nil, err
	}
	return as, &Errand{Issuer: as.Issuer, Resource: r.Resource, Scopes: union(more, f.scopes(challenge, r, as, nil))}, nil
}

// client returns the client of an authorization server that is not configured: one that was
// registered before, or one that is registered now. The caller has the lock.
//
// Spec: 2026-07-28, basic/authorization/client-registration.
func (w *WebFlow) client(ctx context.Context, as *authServer) (*Client, error) {
	switch c, err := w.Clients.Client(ctx, as.Issuer); {
	case err != nil:
		return nil, fmt.Errorf("reading the client that is registered there: %w", err)
	case c != nil && c.usable(w.Redirect):
		return c, nil
	case as.RegistrationEndpoint == "":
		return nil, fmt.Errorf("the authorization server %s registers no clients by itself; register mcpbridge there with the redirect URI %s, and write its client_id into the configuration", shown(as.Issuer), w.Redirect)
	}
	c, err := register(ctx, w.HTTP, as, registrationOf(as, w.Redirect))
	if err != nil {
		return nil, err
	}
	c.RedirectURI = w.Redirect
	return c, w.Clients.KeepClient(ctx, as.Issuer, c)
}

// silence is for how long everybody may stay away who was sent to log in. It is longer than a login
// may take, so that few are under way with a client that is given up.
const silence = time.Hour

// asking returns the client with which somebody is sent to log in. One with which nobody comes back
// any more is given up: an authorization server that has lost its clients shows people an error, and
// sends nobody back. Of several who are sent at once, the first registers it for all.
func (w *WebFlow) asking(ctx context.Context, as *authServer) (*Client, error) {
	if c := w.configured(as); c != nil {
		return c, nil
	}
	unlock, err := w.Clients.Lock(ctx, as.Issuer)
	if err != nil {
		return nil, fmt.Errorf("locking the client that is registered there: %w", err)
	}
	defer unlock()
	c, err := w.client(ctx, as)
	if err == nil && c.Registered && !c.Asked.IsZero() && time.Since(c.Asked) > silence {
		if err := w.Clients.DropClient(ctx, as.Issuer, c.ID); err != nil {
			return nil, fmt.Errorf("discarding the client that is registered there: %w", err)
		}
		c, err = w.client(ctx, as)
	}
	if err != nil || !c.Registered || !c.Asked.IsZero() {
		return c, err
	}
	c.Asked = time.Now()
	return c, w.Clients.KeepClient(ctx, as.Issuer, c)
}

// configured returns the client that needs no registration; nil if there is none.
func (w *WebFlow) configured(as *authServer) *Client {
	switch {
	case w.ClientID != "" && w.ClientSecret != "":
		return &Client{ID: w.ClientID, Secret: w.ClientSecret, Method: as.authMethod(authBasic, authPost), ByHand: true, RedirectURI: w.Redirect}
	case w.ClientID != "":
		return &Client{ID: w.ClientID, Method: authNone, ByHand: true, RedirectURI: w.Redirect}
	case w.Document != "" && as.MetadataDocuments && as.RegistrationEndpoint == "":
		return &Client{ID: w.Document, Method: authNone, RedirectURI: w.Redirect}
	}
	return nil
}

// Finish returns the login of an errand. q is the query with which the browser has returned, with
// the errand's state.
//
// Spec: 2026-07-28, basic/authorization, Authorization Response Validation.
func (w *WebFlow) Finish(ctx context.Context, e *Errand, q url.Values) (*Login, error) {
	as, err := discoverIssuer(ctx, w.HTTP, e.Issuer)
	if err != nil {
		return nil, err
	}
	want := expected{state: e.State, issuer: as.Issuer, sendsIssuer: as.SendsIssuer}
	a := want.judge(q)
	switch {
	case !want.isFor(q):
		return nil, errors.New("the answer is not to what was asked")
	case a.err != nil:
		return nil, w.failed(ctx, e, a.err)
	}
	c := w.configured(as)
	if c == nil {
		if c, err = w.Clients.Client(ctx, as.Issuer); err != nil {
			return nil, fmt.Errorf("reading the client that is registered there: %w", err)
		}
	}
	if c == nil || c.ID != e.ClientID {
		return nil, errors.New("the client at the authorization server is another one by now; begin again")
	}
	w.cameBack(ctx, as.Issuer, c)
	g := grant{http: w.HTTP, endpoint: as.TokenEndpoint, client: c, params: url.Values{
		"grant_type": {grantCode}, "code": {a.code}, "redirect_uri": {w.Redirect}, "code_verifier": {e.Verifier}, "resource": {e.Resource},
	}}
	t, err := g.token(ctx)
	if err != nil {
		return nil, w.failed(ctx, e, fmt.Errorf("exchanging the code for a token: %w", err))
	}
	return &Login{
		Server: w.URL, Issuer: as.Issuer, Resource: e.Resource, Client: *c, Scopes: e.Scopes,
		TokenEndpoint: as.TokenEndpoint, RevocationEndpoint: as.RevocationEndpoint, Token: tokenOf(t),
	}, nil
}

// cameBack notes that somebody has come back who was sent to log in with a client. If that fails, it
// may be registered once too often, and nothing else.
func (w *WebFlow) cameBack(ctx context.Context, issuer string, c *Client) {
	if c.Asked.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveWait)
	defer cancel()
	unlock, err := w.Clients.Lock(ctx, issuer)
	if err != nil {
		return
	}
	defer unlock()
	if kept, err := w.Clients.Client(ctx, issuer); err == nil && kept != nil && kept.ID == c.ID {
		kept.Asked = time.Time{}
		_ = w.Clients.KeepClient(ctx, issuer, kept) // see above
	}
}

// failed returns why a login has failed. A client that the authorization server does not know any
// more is registered anew before the next one.
func (w *WebFlow) failed(ctx context.Context, e *Errand, why error) error {
	if !lostClient(why) {
		return why
	}
	unlock, err := w.Clients.Lock(ctx, e.Issuer)
	if err == nil {
		defer unlock()
		err = w.Clients.DropClient(ctx, e.Issuer, e.ClientID)
	}
	if err != nil {
		return fmt.Errorf("%w; the client can't be discarded: %v", why, err)
	}
	return why
}

// Document returns the client id metadata document of a page: its own URL, and that to which
// browsers return.
//
// Spec: 2026-07-28, basic/authorization/client-registration, Client ID Metadata Documents.
func Document(at, redirect string) []byte {
	r := registrationOf(&authServer{AuthMethods: []string{authNone}}, redirect)
	r.ClientID = at
	text, _ := json.Marshal(r) // marshaling texts never fails
	return text
}

// registrationOf returns the metadata of a client to whose page browsers return. On this machine
// it is what authorization servers call native, since they let no other return there.
//
// Spec: OpenID Connect Dynamic Client Registration 1.0, 2.
func registrationOf(as *authServer, redirect string) registration {
	kind := "web"
	if u, err := url.Parse(redirect); err == nil && u.Scheme == "http" {
		kind = "native"
	}
	return registration{
		ClientName: ClientName, ApplicationType: kind, RedirectURIs: []string{redirect},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		AuthMethod: as.authMethod(authBasic, authPost, authNone),
	}
}

// authorizationURL returns the URL of an authorization request.
//
// Spec: 2026-07-28, basic/authorization, Resource Parameter Implementation.
func authorizationURL(as *authServer, client, redirect, resource string, scopes []string, state, verifier string) string {
	conf := oauth2.Config{ClientID: client, RedirectURL: redirect, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: as.AuthorizationEndpoint}}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", resource)}
	if slices.Contains(scopes, scopeOffline) {
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent")) // OpenID Connect Core 1.0, 11
	}
	return conf.AuthCodeURL(state, options...)
}

// A wantsError says that a server does not accept a login, and wants another one.
type wantsError struct {
	err    error
	scopes []string // that the other one has to have
}

func (e *wantsError) Error() string { return e.err.Error() }
func (e *wantsError) Unwrap() error { return e.err }

// NeedsLogin reports whether a login has to be made before a request can be sent, since there is
// none that is of use, and with which further scopes.
func NeedsLogin(err error) (scopes []string, needs bool) {
	if wants := (*wantsError)(nil); errors.As(err, &wants) {
		return wants.scopes, true
	}
	return nil, isOver(err)
}

// Forget has the login read again before the next request.
func (s *Stored) Forget() {
	s.holder.failed.Store(nil)
	s.holder.put(nil)
}

// Revoke revokes the tokens of a login at the authorization server.
//
// Spec: RFC 7009.
func (l *Login) Revoke(ctx context.Context, c *fetch.Client) error {
	ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
	defer cancel()
	return l.revoke(ctx, c)
}

// revokeTimeout bounds how long an authorization server may take to revoke.
const revokeTimeout = 15 * time.Second
