package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// Methods of authentication at a token endpoint. Spec: RFC 7591, 2; RFC 7523, 2.2.
const (
	authNone       = "none"
	authBasic      = "client_secret_basic"
	authPost       = "client_secret_post"
	authPrivateKey = "private_key_jwt"
)

// ClientName is the name that authorization servers show to people.
const ClientName = "mcpbridge"

// A Client is the OAuth client as which mcpbridge is registered at one authorization
// server.
type Client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	// Method is how the client authenticates at the token endpoint.
	Method string `json:"method"`
	// Registered says that the client was registered dynamically, with RedirectURI and
	// RedirectURIs only. ByHand says that a person has registered it.
	Registered bool `json:"registered,omitempty"`
	ByHand     bool `json:"by_hand,omitempty"`
	// Anew says that the next login registers another client, since the authorization server may
	// know this one no more. Tokens are refreshed with it until then, in case it does again.
	Anew bool `json:"anew,omitempty"`
	// Asked is when a [WebFlow] sent somebody to log in with the client, of all since one has come
	// back the first; zero if all have.
	Asked time.Time `json:"asked,omitzero"`
	// RedirectURI is the last one that was used.
	RedirectURI  string   `json:"redirect_uri,omitempty"`
	RedirectURIs []string `json:"redirect_uris,omitempty"`
	// Expires is when the secret expires; zero means never.
	Expires time.Time `json:"expires,omitzero"`
}

// usable reports whether a registered client may be used again.
func (c *Client) usable(redirect string) bool {
	known := c.RedirectURI == redirect || slices.Contains(c.RedirectURIs, redirect)
	return c.ID != "" && !c.Anew && known && (c.Expires.IsZero() || time.Until(c.Expires) > time.Minute)
}

// client returns the client for the flow: the configured one, or that of the client id
// metadata document, or one that it registers.
//
// Spec: 2026-07-28, basic/authorization/client-registration.
func (f *Flow) client(ctx context.Context, as *authServer, back *callback) (*Client, error) {
	switch {
	case f.ClientID != "" && f.ClientSecret != "":
		return &Client{ID: f.ClientID, Secret: f.ClientSecret, Method: as.authMethod(authBasic, authPost), ByHand: true}, nil
	case f.ClientID != "":
		return &Client{ID: f.ClientID, Method: authNone, ByHand: true}, nil
	case f.MetadataURL != "" && as.MetadataDocuments:
		return &Client{ID: f.MetadataURL, Method: authNone}, nil
	case as.RegistrationEndpoint != "":
		return f.register(ctx, as, back)
	}
	return nil, fmt.Errorf("the authorization server %s registers no clients by itself; register mcpbridge there with %s, and give the client's id: client_id in the configuration, or --client-id", shown(as.Issuer), toRegister(back.uris))
}

// A registration is the metadata of a client, and the server's response.
//
// Spec: RFC 7591, 2, 3.2.1; OpenID Connect Dynamic Client Registration 1.0, 2.
type registration struct {
	ClientName      string   `json:"client_name,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`

	ClientID      string `json:"client_id,omitempty"`
	ClientSecret  string `json:"client_secret,omitempty"`
	SecretExpires int64  `json:"client_secret_expires_at,omitempty"` // seconds since 1970
}

func (f *Flow) register(ctx context.Context, as *authServer, back *callback) (*Client, error) {
	uris := back.uris
	if !slices.Contains(uris, back.redirectURI()) {
		uris = append(slices.Clone(uris), back.redirectURI())
	}
	c, err := register(ctx, f.HTTP, as, registration{
		ClientName:      ClientName,
		ApplicationType: "native",
		RedirectURIs:    uris,
		GrantTypes:      []string{"authorization_code", "refresh_token"},
		ResponseTypes:   []string{"code"},
		AuthMethod:      as.authMethod(authNone, authBasic, authPost),
	})
	if err != nil {
		return nil, fmt.Errorf("%w; register mcpbridge there yourself with %s, and give the client's id", err, toRegister(back.uris))
	}
	return c, nil
}

// register registers a client at an authorization server.
func register(ctx context.Context, c *fetch.Client, as *authServer, ask registration) (*Client, error) {
	text, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, as.RegistrationEndpoint, bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("registration_endpoint is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	got := registration{AuthMethod: ask.AuthMethod}
	if err := c.Do(req, &got); err != nil {
		return nil, fmt.Errorf("registering at the authorization server %s: %w", shown(as.Issuer), grantError(err))
	}
	return got.client(ask.RedirectURIs)
}

// client returns the client that a server has registered.
func (r *registration) client(uris []string) (*Client, error) {
	c := &Client{ID: r.ClientID, Secret: r.ClientSecret, Method: r.AuthMethod, Registered: true, RedirectURIs: uris}
	if c.Method == "" {
		c.Method = authBasic
	}
	if r.SecretExpires > 0 {
		c.Expires = time.Unix(r.SecretExpires, 0)
	}
	switch {
	case c.ID == "":
		return nil, errors.New("the authorization server registered no client: its answer has no client_id")
	case !slices.Contains([]string{authNone, authBasic, authPost}, c.Method):
		return nil, fmt.Errorf("the authorization server wants the client to authenticate by %s, which mcpbridge does not do here; register it yourself, and give the client's id", shown(c.Method))
	case c.Method != authNone && c.Secret == "":
		c.Method = authNone
	}
	return c, nil
}
