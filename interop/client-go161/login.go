//go:build login

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

func streamable(to *remote.Target) (mcp.Transport, error) {
	t := &mcp.StreamableClientTransport{Endpoint: to.URL}
	if to.Login == nil {
		return t, nil
	}
	h, err := auth.NewAuthorizationCodeHandler(loginConfig(to.Login))
	if err != nil {
		return nil, err
	}
	t.OAuthHandler = h
	return t, nil
}

func loginConfig(l *remote.Login) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: l.Redirect,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return browse(ctx, l.Browser, args.URL)
		},
	}
	if l.Document != "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.Document}
		return c
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName:              "interop-go",
		RedirectURIs:            []string{l.Redirect},
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		TokenEndpointAuthMethod: "none",
	}}
	return c
}

// browse has the test follow the authorization URL, and returns what the user would come back with.
func browse(ctx context.Context, browser, to string) (*auth.AuthorizationResult, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, browser+"?url="+url.QueryEscape(to), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var back struct{ Code, State, Iss, Error string }
	if err := json.NewDecoder(res.Body).Decode(&back); err != nil {
		return nil, fmt.Errorf("the browser answered %s: %w", res.Status, err)
	}
	if back.Error != "" {
		return nil, fmt.Errorf("the authorization server refused: %s", back.Error)
	}
	return &auth.AuthorizationResult{Code: back.Code, State: back.State, Iss: back.Iss}, nil
}
