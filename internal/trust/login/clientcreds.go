package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// IssuerOptions configure an authorization server, and the client that mcpbridge is there.
type IssuerOptions struct {
	HTTP   *fetch.Client
	Issuer string
	// Resource is the server for which tokens are issued.
	Resource string
	ClientID string
	// ClientSecret or PrivateKey, in PEM, authenticates the client. KeyID is the key id of
	// the assertions that PrivateKey signs.
	ClientSecret, PrivateKey, KeyID string
	Scopes                          []string
	Audience                        string // for token exchange, in addition to Resource
	// IDJAG is the server's own authorization server, and the client there, for token exchange
	// at an identity provider that is another one. Nil means that Issuer issues the tokens.
	IDJAG *IssuerOptions
	// Secrets hides the tokens in logs and errors; may be nil.
	Secrets *redact.Redactor
}

// An issuerClient requests tokens from an authorization server, as a configured client.
type issuerClient struct {
	IssuerOptions
	signer *signer                    // nil without a PrivateKey
	found  atomic.Pointer[authServer] // nil before the first request
}

func newIssuerClient(o IssuerOptions) (*issuerClient, error) {
	i := &issuerClient{IssuerOptions: o}
	var err error
	if o.PrivateKey != "" {
		i.signer, err = newSigner(o.PrivateKey, o.KeyID)
	}
	return i, err
}

// server returns the authorization server's metadata.
func (i *issuerClient) server(ctx context.Context) (*authServer, error) {
	if as := i.found.Load(); as != nil {
		return as, nil
	}
	as, err := discoverIssuer(ctx, i.HTTP, i.Issuer)
	if err == nil {
		i.found.Store(as)
	}
	return as, err
}

// token requests a token. After a failure the metadata is fetched again.
func (i *issuerClient) token(ctx context.Context, params url.Values, scopes []string) (Token, error) {
	as, err := i.server(ctx)
	if err != nil {
		return Token{}, err
	}
	t, err := i.request(ctx, as, i.about(params, scopes), nil)
	if err != nil {
		return Token{}, err
	}
	return tokenOf(t), nil
}

// about adds to params what is asked for.
func (i *issuerClient) about(params url.Values, scopes []string) url.Values {
	params.Set("resource", i.Resource)
	if len(scopes) > 0 {
		params.Set("scope", strings.Join(scopes, " "))
	}
	return params
}

// request requests what check accepts; a token if that is nil.
func (i *issuerClient) request(ctx context.Context, as *authServer, params url.Values, check func(*oauth2.Token) error) (*oauth2.Token, error) {
	c, err := i.client(as, params)
	if err != nil {
		return nil, err
	}
	g := grant{http: i.HTTP, endpoint: as.TokenEndpoint, client: c, params: params, check: check}
	t, err := g.token(ctx)
	if err != nil {
		i.found.Store(nil)
	}
	return t, err
}

// client returns the client, and adds its authentication to params.
func (i *issuerClient) client(as *authServer, params url.Values) (*Client, error) {
	if i.signer == nil {
		return &Client{ID: i.ClientID, Secret: i.ClientSecret, Method: as.authMethod(authBasic, authPost)}, nil
	}
	assertion, err := i.signer.assertion(i.ClientID, as)
	if err != nil {
		return nil, err
	}
	params.Set("client_assertion_type", assertionTypeJWT)
	params.Set("client_assertion", assertion)
	return &Client{ID: i.ClientID, Method: authPrivateKey}, nil
}

// ClientCredentials returns credentials with tokens for the gateway itself, for a [Current] that
// closes them.
//
// Spec: ext-auth, oauth-client-credentials, Client Credentials Flow.
func ClientCredentials(o IssuerOptions) (upstream.Credentials, error) {
	i, err := newIssuerClient(o)
	if err != nil {
		return nil, err
	}
	return i.clientCredentials(), nil
}

func (i *issuerClient) clientCredentials() *clientCredentials {
	get := func(ctx context.Context, _ string, scopes []string) (*held, error) {
		scopes = union(i.Scopes, scopes)
		t, err := i.token(ctx, url.Values{"grant_type": {grantClient}}, scopes)
		if err != nil {
			return nil, unusable(fmt.Errorf("can't be used, since no token was issued: %w", err), "check upstream_auth.client_credentials")
		}
		return hold(t, scopes), nil
	}
	h := newHolder(i.Secrets, get)
	return &clientCredentials{h, newRefresher(h)}
}

type clientCredentials struct {
	*holder
	beside *refresher
}

// Authorization implements [upstream.Credentials].
func (c *clientCredentials) Authorization(ctx context.Context, _ upstream.Behalf) (string, error) {
	return c.beside.value(ctx)
}

// Close ends a refresh in progress.
func (c *clientCredentials) Close() { c.beside.close() }

// Renew implements [upstream.Credentials].
func (c *clientCredentials) Renew(ctx context.Context, r upstream.CredentialRefusal) (string, error) {
	return renewed(&r, "check upstream_auth.client_credentials", func(more []string) (string, error) { return c.renew(ctx, r.Value, more) })
}

// renewed calls renew for a token that the server may accept after it has refused one.
// advice is what to do after too many refusals.
func renewed(r *upstream.CredentialRefusal, advice string, renew func(more []string) (string, error)) (string, error) {
	more := wants(r)
	switch {
	case r.Status == http.StatusForbidden && len(more) == 0:
		return "", nil
	case r.Attempt > maxRenewals && len(more) > 0:
		return "", unusable(fmt.Errorf("wants the scopes %s, and refuses the token that was issued for them", shown(strings.Join(more, " "))), advice)
	case r.Attempt > maxRenewals || r.Status == http.StatusUnauthorized && r.Attempt > 1 && len(more) == 0:
		return "", unusable(errors.New("refuses the token that was issued for it"), advice)
	}
	return renew(slices.Clone(more))
}
