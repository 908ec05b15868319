package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// An authServer is an authorization server's metadata.
//
// Spec: RFC 8414, 2; RFC 9207, 3; OpenID Connect Discovery 1.0, 3.
type authServer struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	SigningAlgorithms     []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	Scopes                []string `json:"scopes_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
	MetadataDocuments     bool     `json:"client_id_metadata_document_supported"`
}

// discoverIssuer fetches the metadata of an authorization server.
//
// Spec: 2026-07-28, basic/authorization/authorization-server-discovery, Authorization
// Server Metadata Discovery.
func discoverIssuer(ctx context.Context, c *fetch.Client, issuer string) (*authServer, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s is not the URL of an authorization server", shown(issuer))
	}
	var first error
	for _, at := range spec.IssuerMetadataURLs(u) {
		as := new(authServer)
		err := c.JSON(ctx, at, as)
		if err == nil {
			err = as.check(ctx, c, issuer)
		}
		if err == nil {
			return as, nil
		}
		var status *fetch.StatusError
		if first == nil || errors.As(first, &status) && status.Code == 404 {
			first = err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return nil, fmt.Errorf("reading the metadata of the authorization server %s: %w", shown(issuer), first)
}

// check refuses metadata of another issuer, and endpoints to which nothing must be sent.
//
// Spec: RFC 8414, 3.3.
func (as *authServer) check(ctx context.Context, c *fetch.Client, issuer string) error {
	if as.Issuer != issuer {
		return fmt.Errorf("it is of another issuer, %s, and so not used", shown(as.Issuer))
	}
	if as.TokenEndpoint == "" {
		return errors.New("it names no token_endpoint")
	}
	for _, endpoint := range []string{as.AuthorizationEndpoint, as.TokenEndpoint, as.RegistrationEndpoint, as.RevocationEndpoint} {
		if endpoint == "" {
			continue
		}
		if err := c.Check(ctx, endpoint); err != nil {
			return err
		}
	}
	return nil
}

// supportsCode returns an error if people can't log in at the authorization server. With
// assume, one that says nothing of PKCE is taken to support it, and assumed is true.
//
// Spec: 2026-07-28, basic/authorization/security-considerations, Authorization Code
// Protection.
func (as *authServer) supportsCode(assume bool) (assumed bool, err error) {
	switch {
	case as.AuthorizationEndpoint == "":
		return false, fmt.Errorf("the authorization server %s names no authorization_endpoint, so that nobody can log in there", shown(as.Issuer))
	case slices.Contains(as.ChallengeMethods, "S256"):
		return false, nil
	case assume && as.ChallengeMethods == nil: // a list without S256 says that it does not
		return true, nil
	}
	return false, fmt.Errorf("the authorization server %s does not say that it supports PKCE with S256 (code_challenge_methods_supported); a login there could be stolen and is refused", shown(as.Issuer))
}

// authMethod returns the method of authentication at the token endpoint: the first in known
// that the server supports.
//
// Spec: RFC 8414, 2: without a list it is client_secret_basic.
func (as *authServer) authMethod(known ...string) string {
	for _, m := range known {
		if slices.Contains(as.AuthMethods, m) {
			return m
		}
	}
	return known[0]
}

// shown returns the URL of a document for people. It hides control characters, which could
// forge lines of a log or commands to a terminal, and shortens long URLs, which could hide
// other text.
func shown(text string) string {
	const most = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		text = text[:most] + "…"
	}
	if text == "" {
		return "(none)"
	}
	return text
}
