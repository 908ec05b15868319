package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// Grant types and parameters. Spec: RFC 6749, 4 to 6; RFC 8693, 2.1; RFC 7523, 2.2.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantClient      = "client_credentials"
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken  = "urn:ietf:params:oauth:token-type:access_token"
	typeIDJAG        = "urn:ietf:params:oauth:token-type:id-jag"
	grantJWTBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	assertionTypeJWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

	maxToken = 64 << 10 // bytes
)

// A grant is a request to a token endpoint.
type grant struct {
	http     *fetch.Client
	endpoint string
	client   *Client
	params   url.Values
	check    func(*oauth2.Token) error // nil means checkToken
}

// token sends the request.
func (g *grant) token(ctx context.Context) (*oauth2.Token, error) {
	c := clientcredentials.Config{
		ClientID:       g.client.ID,
		ClientSecret:   g.client.Secret,
		TokenURL:       g.endpoint,
		EndpointParams: g.params,
		AuthStyle:      oauth2.AuthStyleInParams,
	}
	switch g.client.Method {
	case authBasic: // servers on the Python SDK read the client id from the body
		c.AuthStyle = oauth2.AuthStyleInHeader
		g.params.Set("client_id", g.client.ID)
	case authPrivateKey:
		c.ClientID, c.ClientSecret = "", "" // they are in the assertion
	case authNone:
		c.ClientSecret = ""
	}
	t, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, g.http.HTTP()))
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, g.failed(err)
	}
	if g.check != nil {
		return t, g.check(t)
	}
	return t, checkToken(t)
}

// checkToken returns an error if a token can't be sent to a server.
//
// Spec: RFC 6749, 7.1; RFC 6750, 2.1.
func checkToken(t *oauth2.Token) error {
	switch {
	case !strings.EqualFold(t.TokenType, "bearer"):
		return fmt.Errorf("the authorization server issued a token of type %q, not Bearer", shown(t.TokenType))
	case len(t.AccessToken) > maxToken || len(t.RefreshToken) > maxToken:
		return fmt.Errorf("the authorization server issued a token of more than %d bytes", maxToken)
	case strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("the authorization server issued a token that no header can hold")
	}
	return nil
}

// failed returns the error of a request for a token, without secrets of the request.
func (g *grant) failed(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		if strings.HasPrefix(err.Error(), "oauth2: ") {
			return errors.New("the answer of the authorization server can't be read")
		}
		return fetch.Cause(err)
	}
	e := &GrantError{Status: refused.Response.StatusCode, Code: refused.ErrorCode, Description: refused.ErrorDescription}
	for _, values := range g.params {
		for _, v := range values {
			if len(v) >= 8 && strings.Contains(e.Description, v) {
				e.Description = ""
			}
		}
	}
	if g.client.Secret != "" && strings.Contains(e.Description, g.client.Secret) {
		e.Description = ""
	}
	return e
}

// A GrantError says that an authorization server refused to issue a token.
//
// Spec: RFC 6749, 5.2.
type GrantError struct {
	Status      int
	Code        string
	Description string
}

func (e *GrantError) Error() string {
	text := e.Public()
	if e.Description != "" {
		text += ": " + shown(e.Description)
	}
	return text
}

// Public returns the text for clients: registered error codes only.
func (e *GrantError) Public() string {
	if e.Code == "" {
		return fmt.Sprintf("the authorization server answered HTTP %d", e.Status)
	}
	return "the authorization server refused: " + shown(e.Code)
}

// finalCodes say that a refresh token, or its client, is of no use any more. Beside those of
// RFC 6749, 5.2, they are OpenID Connect's, as Entra ID has them, and those of GitHub and
// Slack.
var finalCodes = []string{
	"invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
	"interaction_required", "login_required", "consent_required", "bad_refresh_token", "invalid_refresh_token",
}

// final reports whether the authorization server has judged a refresh token, and does not
// accept it any more.
func (e *GrantError) final() bool { return !e.busy() && slices.Contains(finalCodes, e.Code) }

// busy reports whether the authorization server is busy or broken, and so has judged nothing,
// whatever the body says.
func (e *GrantError) busy() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// lostClient reports whether an authorization server has said that it does not know a client. Where
// the client was registered for the grants that it uses, unauthorized_client says no more than
// invalid_client does, and some servers have that code alone.
//
// Spec: RFC 6749, 5.2.
func lostClient(err error) bool {
	var refused *GrantError
	return errors.As(err, &refused) && refused.final() && (refused.Code == "invalid_client" || refused.Code == "unauthorized_client")
}

// grantError converts a status error to one with the error in its body.
func grantError(err error) error {
	var status *fetch.StatusError
	if !errors.As(err, &status) {
		return err
	}
	var said struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(status.Body, &said) // without a body the status is all there is
	return &GrantError{Status: status.Code, Code: said.Code, Description: said.Description}
}
