package login

import (
	"context"
	"errors"
	"net/url"

	"golang.org/x/oauth2"
)

// byGrant requests a token of the server's own authorization server, by a grant that the identity
// provider issues in exchange for the caller's token (enterprise-managed authorization).
//
// Spec: draft-ietf-oauth-identity-assertion-authz-grant, Token Exchange, Access Token Request;
// ext-auth, Enterprise-Managed Authorization.
func (e *Exchange) byGrant(ctx context.Context, params url.Values, scopes []string) (Token, error) {
	idp, err := e.issuer.server(ctx)
	if err != nil {
		return Token{}, err
	}
	params.Set("requested_token_type", typeIDJAG)
	if !params.Has("audience") {
		params.Set("audience", e.server.Issuer)
	}
	grant, err := e.issuer.request(ctx, idp, e.issuer.about(params, scopes), checkIDJAG)
	if err != nil {
		return Token{}, err
	}
	as, err := e.server.server(ctx)
	if err != nil {
		return Token{}, err
	}
	t, err := e.server.request(ctx, as, url.Values{"grant_type": {grantJWTBearer}, "assertion": {grant.AccessToken}}, nil)
	if err != nil {
		return Token{}, err
	}
	out := tokenOf(t)
	out.RefreshToken = "" // the identity provider is asked each time, so that what it has ended ends here
	return out, nil
}

// checkIDJAG returns an error for what is no grant: an access token must not be sent to another
// authorization server.
func checkIDJAG(t *oauth2.Token) error {
	kind, _ := t.Extra("issued_token_type").(string)
	switch {
	case kind != typeIDJAG:
		return errors.New("the identity provider issued something else than an identity assertion grant (id-jag)")
	case len(t.AccessToken) > maxToken:
		return errors.New("the identity provider issued a grant that is too large")
	}
	return nil
}
