package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// Logout revokes the login to a server if possible, and deletes it in any case. revoked
// says why it was not revoked; err is [ErrNoLogin] if there is no login.
//
// Spec: RFC 7009.
func Logout(ctx context.Context, c *fetch.Client, s *Store, server string) (revoked, err error) {
	unlock, err := s.lock(ctx, server, lockTokens)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := s.Load(server)
	if errors.Is(err, ErrNoLogin) {
		return nil, err
	}
	if err == nil {
		revoked = l.revoke(ctx, c)
	} else {
		revoked = err
	}
	return revoked, s.Delete(server)
}

// revoke revokes the tokens of a login at the authorization server.
func (l *Login) revoke(ctx context.Context, c *fetch.Client) error {
	token, kind := l.Token.RefreshToken, "refresh_token"
	if token == "" {
		token, kind = l.Token.AccessToken, "access_token"
	}
	if l.RevocationEndpoint == "" {
		return errors.New("the authorization server does not revoke tokens (no revocation_endpoint)")
	}
	form := url.Values{"token": {token}, "token_type_hint": {kind}, "client_id": {l.Client.ID}}
	if l.Client.Method == authPost {
		form.Set("client_secret", l.Client.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.RevocationEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("revocation_endpoint is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if l.Client.Method == authBasic {
		req.SetBasicAuth(url.QueryEscape(l.Client.ID), url.QueryEscape(l.Client.Secret))
	}
	resp, err := c.HTTP().Do(req)
	if err != nil {
		return fetch.Cause(err)
	}
	defer func() { _ = resp.Body.Close() }() // only the status matters
	if resp.StatusCode != http.StatusOK {
		return &fetch.StatusError{Code: resp.StatusCode}
	}
	return nil
}
