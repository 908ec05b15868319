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
	// Registered says that the client was registered dynamically, with RedirectURI only.
	Registered  bool   `json:"registered,omitempty"`
	RedirectURI string `json:"redirect_uri,omitempty"`
	// Expires is when the secret expires; zero means never.
	Expires time.Time `json:"expires,omitzero"`
}

// usable reports whether a registered client may be used again.
func (c *Client) usable(redirect string) bool {
	return c.ID != "" && c.RedirectURI == redirect && (c.Expires.IsZero() || time.Until(c.Expires) > time.Minute)
}

// client returns the client for the flow: the configured one, or that of the client id
// metadata document, or one that it registers.
//
// Spec: 2026-07-28, basic/authorization/client-registration.
func (f *Flow) client(ctx context.Context, as *authServer, redirect string) (*Client, error) {
	switch {
	case f.ClientID != "" && f.ClientSecret != "":
		return &Client{ID: f.ClientID, Secret: f.ClientSecret, Method: as.authMethod(authBasic, authPost)}, nil
	case f.ClientID != "":
		return &Client{ID: f.ClientID, Method: authNone}, nil
	case f.MetadataURL != "" && as.MetadataDocuments:
		return &Client{ID: f.MetadataURL, Method: authNone}, nil
	case as.RegistrationEndpoint != "":
		return register(ctx, f.HTTP, as, redirect)
	}
	return nil, fmt.Errorf("the authorization server %s registers no clients by itself; register mcpbridge there with the redirect URI %s, and give the client's id: client_id in the configuration, or --client-id", shown(as.Issuer), redirect)
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

func register(ctx context.Context, c *fetch.Client, as *authServer, redirect string) (*Client, error) {
	ask := registration{
		ClientName:      ClientName,
		ApplicationType: "native",
		RedirectURIs:    []string{redirect},
		GrantTypes:      []string{"authorization_code", "refresh_token"},
		ResponseTypes:   []string{"code"},
		AuthMethod:      as.authMethod(authNone, authBasic, authPost),
	}
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
		return nil, fmt.Errorf("registering at the authorization server %s: %w; register mcpbridge there yourself with the redirect URI %s, and give the client's id", shown(as.Issuer), grantError(err), redirect)
	}
	return got.client(redirect)
}

// client returns the client that a server has registered.
func (r *registration) client(redirect string) (*Client, error) {
	c := &Client{ID: r.ClientID, Secret: r.ClientSecret, Method: r.AuthMethod, Registered: true, RedirectURI: redirect}
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
