package login

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// DefaultWait limits how long a person may take to log in.
const DefaultWait = 10 * time.Minute

// A Flow logs a person in to a server. HTTP, Store and Browse are required.
type Flow struct {
	URL   string // the server's
	HTTP  *fetch.Client
	Store *Store

	// Issuer is the authorization server to use, one of those that the server names. Empty
	// means that of the last login, or the first.
	Issuer string
	// ClientID and ClientSecret are those of a client that was registered manually.
	ClientID, ClientSecret string
	// MetadataURL is the URL of a client id metadata document.
	MetadataURL string
	// Scopes are requested in addition to those that the server names, and those of the
	// last login.
	Scopes []string
	// AssumePKCE is an authorization server that is taken to support PKCE if it says nothing
	// of that, which the specification forbids; empty for none.
	AssumePKCE string
	// Tell, which may be nil, is told what a person, or who reads the log, should know.
	Tell func(text string)
	// Port is the port of the redirect URI. Zero means that of the last login, or one of the
	// three that belong to the server.
	Port int
	// Host is the host of the redirect URI, 127.0.0.1 or localhost. Empty means that of the
	// last login, or 127.0.0.1.
	Host string

	// Browse leads the person to a URL. [ErrNoBrowser] says that no browser could be opened:
	// the person may find the URL elsewhere. Another error ends the flow.
	Browse func(url string) error
	// Paste, which may be nil, returns lines in which a person has pasted the URL to which
	// the browser was redirected, if the browser is on another machine. It is read until
	// ctx ends.
	Paste <-chan string
	// Wait limits how long the person may take. Zero means DefaultWait.
	Wait time.Duration
}

// Run logs a person in, even if there is a stored login, and stores the new one.
func (f *Flow) Run(ctx context.Context, challenge Challenge) (*Login, error) {
	ctx, cancel := f.bounded(ctx)
	defer cancel()
	before, err := f.Store.Load(f.URL)
	if err != nil && !errors.Is(err, ErrNoLogin) {
		return nil, err
	}
	return f.run(ctx, challenge, before)
}

// runUnless is Run unless there is a sufficient login, or another process stores one. Only one
// process at a time asks a person by itself; afterwards its login may be sufficient for
// others. A person who runs mcpbridge login need not wait for them.
func (f *Flow) runUnless(ctx context.Context, challenge Challenge, willDo func(*Login) bool) (*Login, error) {
	ctx, cancel := f.bounded(ctx)
	defer cancel()
	unlock, err := f.Store.lock(ctx, f.URL, lockLogin)
	if err != nil {
		return nil, err
	}
	defer unlock()
	before, err := f.Store.Load(f.URL)
	switch {
	case err != nil && !errors.Is(err, ErrNoLogin):
		return nil, err
	case err == nil && willDo(before):
		return before, nil
	}
	ctx, end := f.untilElsewhere(ctx, willDo)
	defer end()
	l, err := f.run(ctx, challenge, before)
	if other := (*elsewhere)(nil); err != nil && errors.As(context.Cause(ctx), &other) {
		return other.login, nil
	}
	return l, err
}

func (f *Flow) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, f.wait(), fmt.Errorf("nobody has logged in within %v", f.wait()))
}

// elsewhere is why a flow ends: another process has stored a login.
type elsewhere struct{ login *Login }

func (e *elsewhere) Error() string { return "somebody has logged in elsewhere" }

// lookElsewhere is the time between two looks for the login of another process.
const lookElsewhere = time.Second

// untilElsewhere returns a context that ends when another process stores a sufficient login.
// The caller calls end.
func (f *Flow) untilElsewhere(ctx context.Context, willDo func(*Login) bool) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { // ends with ctx; end waits for it
		seen := f.Store.version(f.URL)
		for look := time.NewTicker(lookElsewhere); ; {
			select {
			case <-look.C:
			case <-ctx.Done():
				look.Stop()
				return
			}
			if now := f.Store.version(f.URL); !now.equal(seen) {
				seen = now
				if l, err := f.Store.Load(f.URL); err == nil && willDo(l) {
					cancel(&elsewhere{l})
				}
			}
		}
	})
	return ctx, func() { cancel(nil); looking.Wait() }
}

func (f *Flow) wait() time.Duration {
	if f.Wait > 0 {
		return f.Wait
	}
	return DefaultWait
}

// run logs in, and stores the login. before is the last login; nil if there is none.
func (f *Flow) run(ctx context.Context, challenge Challenge, before *Login) (*Login, error) {
	server, err := url.Parse(f.URL)
	if err != nil || server.Host == "" {
		return nil, errors.New("it is not a URL")
	}
	if err := f.HTTP.Check(ctx, f.URL); err != nil {
		return nil, err // tokens would be sent there unencrypted
	}
	r, as, err := f.discover(ctx, server, challenge, before)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Issuer != as.Issuer {
		before = nil // clients and scopes of another server are not valid here
	}
	back, err := listen(f.redirect(before))
	if err != nil {
		return nil, err
	}
	defer back.close()
	c, err := f.clientAgain(ctx, as, back, before)
	if err != nil {
		return nil, err
	}
	c.RedirectURI = back.redirectURI()
	t, scopes, err := f.authorize(ctx, as, c, back, r, f.scopes(challenge, r, as, before))
	if err != nil {
		return nil, f.doubt(ctx, c, err)
	}
	l := &Login{
		Server: f.URL, Issuer: as.Issuer, Resource: r.Resource, Client: *c, Scopes: scopes,
		TokenEndpoint: as.TokenEndpoint, RevocationEndpoint: as.RevocationEndpoint, Token: tokenOf(t),
	}
	return l, f.save(ctx, l)
}

// save stores a login, but not while a token of the last one is being refreshed.
func (f *Flow) save(ctx context.Context, l *Login) error {
	unlock, err := f.Store.lock(ctx, f.URL, lockTokens)
	if err != nil {
		return err
	}
	defer unlock()
	return f.Store.Save(l)
}

// doubt returns the error of a login. If the client of the last one was used, and may be why, the
// next login registers another: the authorization server has said that it does not know it, or
// nobody has come back, who may have been shown just that.
func (f *Flow) doubt(ctx context.Context, c *Client, why error) error {
	cause := context.Cause(ctx)
	silent := cause != nil && !errors.As(cause, new(*elsewhere)) && !errors.Is(cause, errDeclined)
	if !silent && !lostClient(why) {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), doubtWait)
	defer cancel()
	k := f.Store.KeeperOf(f.URL)
	unlock, err := k.Lock(ctx)
	if err != nil {
		return why
	}
	defer unlock()
	l, err := k.Load(ctx)
	if err != nil || l.Client.ID != c.ID || !c.Registered {
		return why
	}
	if err := k.RegisterAnew(ctx, l); err != nil {
		return fmt.Errorf("%w; the client can't be discarded: %v", why, err)
	}
	return fmt.Errorf("%w; the next login registers mcpbridge there anew, in case the authorization server does not know it any more", why)
}

// doubtWait limits how long the end of a login waits for a refresh of the last one.
const doubtWait = 5 * time.Second

// discover finds the authorization server of a server.
func (f *Flow) discover(ctx context.Context, server *url.URL, challenge Challenge, before *Login) (*resource, *authServer, error) {
	r, err := discoverResource(ctx, f.HTTP, server, challenge)
	unnamed := errors.Is(err, errNoMetadata)
	if unnamed { // as in 2025-03-26: the server's origin issues tokens itself
		r = &resource{Resource: Canonical(server), AuthorizationServers: []string{origin(server)}}
	} else if err != nil {
		return nil, nil, err
	}
	issuer := r.AuthorizationServers[0]
	switch {
	case f.Issuer != "" && !slices.Contains(r.AuthorizationServers, f.Issuer):
		return nil, nil, fmt.Errorf("the server does not name %s as one of its authorization servers; it names %s", shown(f.Issuer), shown(strings.Join(r.AuthorizationServers, ", ")))
	case f.Issuer != "":
		issuer = f.Issuer
	case before != nil && slices.Contains(r.AuthorizationServers, before.Issuer):
		issuer = before.Issuer
	}
	as, err := discoverIssuer(ctx, f.HTTP, issuer)
	if status := (*fetch.StatusError)(nil); unnamed && errors.As(err, &status) && status.Code >= 400 && status.Code <= 499 {
		err = fmt.Errorf("%w: %v", ErrNoIssuer, err)
	}
	if err == nil {
		err = f.checkPKCE(as)
	}
	return r, as, err
}

// checkPKCE returns an error for an authorization server that may not support PKCE. What is
// assumed holds for one issuer: a server could name another one.
func (f *Flow) checkPKCE(as *authServer) error {
	assumed, err := as.supportsCode(f.AssumePKCE == as.Issuer)
	if assumed && f.Tell != nil {
		f.Tell("the authorization server " + shown(as.Issuer) + " does not say that it supports PKCE with S256; it is assumed, as pkce says, although the specification forbids that: if it ignores PKCE, a login can be stolen")
	}
	return err
}

// clientAgain returns the client of the last login, if it may be used again: one that a person
// has registered, or that was registered on the way; or that of [Flow.client].
func (f *Flow) clientAgain(ctx context.Context, as *authServer, back *callback, before *Login) (*Client, error) {
	if f.ClientID != "" || before == nil {
		return f.client(ctx, as, back)
	}
	again := before.Client
	document := f.MetadataURL != "" && as.MetadataDocuments
	if again.ByHand || !document && again.Registered && again.usable(back.redirectURI()) {
		return &again, nil
	}
	return f.client(ctx, as, back)
}

// scopes returns the scopes to request: those in the challenge, or all that the server
// supports, and always those of the last login.
//
// Spec: 2026-07-28, basic/authorization, Scope Selection Strategy; Step-Up Authorization
// Flow; Refresh Tokens.
func (f *Flow) scopes(challenge Challenge, r *resource, as *authServer, before *Login) []string {
	scopes := challenge.Scopes()
	if len(scopes) == 0 {
		scopes = r.ScopesSupported
	}
	scopes = union(f.Scopes, scopes)
	if before != nil {
		scopes = union(before.Scopes, scopes)
	}
	if slices.Contains(as.Scopes, scopeOffline) {
		scopes = union(scopes, []string{scopeOffline})
	}
	return scopes
}

const scopeOffline = "offline_access"

// maxScopes limits the number of requested scopes.
const maxScopes = 200

// union returns the scopes of both in order, without duplicates and invalid ones.
func union(a, b []string) []string {
	var out []string
	for _, s := range slices.Concat(a, b) {
		if isScope(s) && !slices.Contains(out, s) && len(out) < maxScopes {
			out = append(out, s)
		}
	}
	return out
}

// isScope reports whether a text is a valid scope.
//
// Spec: RFC 6749, 3.3.
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' })
}

// authorize sends the person to the authorization server, and returns the issued token with
// the requested scopes.
//
// Spec: 2026-07-28, basic/authorization, Authorization Flow Steps; Resource Parameter
// Implementation. RFC 9700, 2.1.
func (f *Flow) authorize(ctx context.Context, as *authServer, c *Client, back *callback, r *resource, scopes []string) (*oauth2.Token, []string, error) {
	verifier := oauth2.GenerateVerifier()
	back.expect(expected{state: rand.Text(), issuer: as.Issuer, sendsIssuer: as.SendsIssuer})
	if err := f.Browse(authorizationURL(as, c.ID, back.redirectURI(), r.Resource, scopes, back.want.state, verifier)); err != nil && !errors.Is(err, ErrNoBrowser) {
		return nil, nil, err
	}
	code, err := back.await(ctx, f.Paste)
	if err != nil {
		return nil, nil, err
	}
	g := grant{http: f.HTTP, endpoint: as.TokenEndpoint, client: c, params: url.Values{
		"grant_type": {grantCode}, "code": {code}, "redirect_uri": {back.redirectURI()},
		"code_verifier": {verifier}, "resource": {r.Resource},
	}}
	t, err := g.token(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("exchanging the code for a token: %w", err)
	}
	return t, scopes, nil
}

// Ask sends the server a request without a credential, and returns the status, and the
// challenge of a 401.
func (f *Flow) Ask(ctx context.Context) (int, Challenge, error) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, Challenge{}, errors.New("it is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := f.HTTP.HTTP().Do(req)
	if err != nil {
		return 0, Challenge{}, fetch.Cause(err)
	}
	defer func() { _ = resp.Body.Close() }()      // the rest is not needed
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // lets the server finish
	if resp.StatusCode != http.StatusUnauthorized {
		return resp.StatusCode, Challenge{}, nil
	}
	return resp.StatusCode, ReadChallenge(resp.Header), nil
}

// LetIn reports whether a server that has answered with a status took a request without a
// credential, or refused it for something else.
func LetIn(status int) bool {
	return status < 500 && status != http.StatusUnauthorized && status != http.StatusForbidden
}

// Stored returns the value of Authorization for the stored login; [ErrNoLogin] if there is
// none. server is how mcpbridge login is told which server it is.
func (f *Flow) Stored(ctx context.Context, server string) (string, error) {
	if _, err := f.Store.Load(f.URL); err != nil {
		return "", err
	}
	s := NewStored(StoredOptions{Server: server, HTTP: f.HTTP, Keeper: f.Store.KeeperOf(f.URL)})
	defer s.Close()
	value, err := s.Authorization(ctx, upstream.Behalf{})
	if none := (*upstream.CredentialError)(nil); errors.As(err, &none) {
		return "", fmt.Errorf("%w; %s", none.Err, none.Step)
	}
	return value, err
}
