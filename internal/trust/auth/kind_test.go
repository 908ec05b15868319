package auth

import (
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
)

// A type is accepted by its name, and one that is not there by the name missing, which no other
// stands for.
func TestTypes(t *testing.T) {
	none := struct{}{}
	for _, tt := range []struct {
		accepts []string
		typ     any
		want    bool
	}{
		{nil, "at+jwt", true}, {nil, "application/AT+JWT", true}, {nil, none, false}, {nil, "JWT", false}, {nil, "missing", false},
		{[]string{"JWT"}, "JWT", true}, {[]string{"JWT"}, "jwt", true}, {[]string{"JWT"}, none, false}, {[]string{"JWT"}, "", false}, {[]string{"JWT"}, nil, false}, {[]string{"JWT"}, "at+jwt", false},
		{[]string{"missing"}, none, true}, {[]string{"missing"}, "missing", false}, {[]string{"missing"}, "", false}, {[]string{"missing"}, 1, false},
		{[]string{"missing"}, []string{}, false}, {[]string{"missing"}, "JWT", false}, {[]string{"missing"}, "application/missing", false},
		{[]string{"at+jwt", "JWT", "missing"}, "application/okta-internal-at+jwt", false}, {[]string{"at+jwt", "JWT", "missing"}, "dpop+jwt", false}, {[]string{"at+jwt", "JWT", "missing"}, "secevent+jwt", false},
		{[]string{"at+jwt", "JWT", "missing"}, "logout+jwt", false}, {[]string{"at+jwt", "JWT", "missing"}, "none", false},
	} {
		i, j := newJWT(t, func(o *JWTOptions) { o.Types = tt.accepts })
		header := map[jose.HeaderKey]any{"typ": tt.typ}
		if tt.typ == none {
			header = nil
		}
		_, err := j.Authenticate(sending(issuertest.Sign(t, i.Key(), header, i.Claims(resource, nil))), endpoint(t, resource))
		if (err == nil) != tt.want {
			t.Errorf("with types %q typ %v = %v, want accepted = %v", tt.accepts, tt.typ, err, tt.want)
		}
	}
}

// An audience is accepted besides the URL, byte for byte. Where it is that of clients, ID
// tokens have it, too, and are told by what access tokens have alone.
func TestAudiences(t *testing.T) {
	const api, client = "api://mcp", "6e74172b-be56-4843-9ff4-e66a39bb12e3"
	i, j := newJWT(t, func(o *JWTOptions) {
		o.Audiences, o.Types = []string{api, client}, []string{AccessToken, "JWT", Untyped}
	})
	with := func(typ string, aud any, changes map[string]any) string {
		header := map[jose.HeaderKey]any{"typ": typ}
		if typ == "" {
			header = nil
		}
		claims := i.Claims(resource, changes)
		claims["aud"] = aud
		return issuertest.Sign(t, i.Key(), header, claims)
	}
	noScope := map[string]any{"scope": nil}
	for name, token := range map[string]string{
		"the URL":                         with("at+jwt", resource, nil),
		"another audience":                with("JWT", api, nil),
		"the second one":                  with("", client, nil),
		"one of several":                  with("JWT", []string{"https://id.example.com/userinfo", api}, nil),
		"its type says it":                with("at+jwt", client, noScope),
		"scp":                             with("JWT", client, map[string]any{"scope": nil, "scp": "use"}),
		"an application at Entra":         with("JWT", client, map[string]any{"scope": nil, "azpacr": "1", "roles": []string{"x"}}),
		"an application at Entra, v1":     with("JWT", client, map[string]any{"scope": nil, "appidacr": "1"}),
		"client_id":                       with("", client, map[string]any{"scope": nil, "client_id": "x"}),
		"the URL, of nothing but claims":  with("JWT", resource, noScope),
		"token_use access, as at Cognito": with("", resource, map[string]any{"token_use": "access"}),
		"typ Bearer, as at Keycloak":      with("JWT", api, map[string]any{"typ": "Bearer"}),
	} {
		if _, err := j.Authenticate(sending(token), endpoint(t, resource)); err != nil {
			t.Errorf("%s = %v, want it accepted", name, err)
		}
	}
	for name, token := range map[string]string{
		"the URL of another endpoint":                with("at+jwt", "https://mcp.example.com/mcp/other", nil),
		"another audience":                           with("at+jwt", "api://other", nil),
		"the beginning of one":                       with("at+jwt", "api://", nil),
		"one with a slash":                           with("at+jwt", api+"/", nil),
		"one in another case":                        with("at+jwt", "API://mcp", nil),
		"both in one text":                           with("at+jwt", api+" "+resource, nil),
		"none":                                       with("at+jwt", nil, nil),
		"an empty list":                              with("at+jwt", []string{}, nil),
		"the issuer itself":                          with("at+jwt", i.URL, nil),
		"an ID token of the client":                  with("JWT", client, noScope),
		"an ID token of the client without a type":   with("", client, noScope),
		"an ID token with roles, as at Entra":        with("JWT", client, map[string]any{"scope": nil, "roles": []string{"x"}, "ver": "2.0"}),
		"an ID token with azp":                       with("JWT", client, map[string]any{"scope": nil, "azp": client}),
		"an ID token with the scope that it has not": with("JWT", client, map[string]any{"nonce": "n"}),
		"an ID token of Cognito":                     with("", client, map[string]any{"token_use": "id"}),
		"an ID token of Keycloak":                    with("JWT", client, map[string]any{"typ": "ID"}),
		"a refresh token of Keycloak":                with("JWT", client, map[string]any{"typ": "Refresh"}),
		"an offline token of Keycloak":               with("JWT", resource, map[string]any{"typ": "Offline"}),
		"a logout token of Keycloak":                 with("JWT", client, map[string]any{"typ": "Logout", "events": map[string]any{}}),
		"an ID token of Cognito for the URL":         with("", resource, map[string]any{"token_use": "id"}),
	} {
		if id, err := j.Authenticate(sending(token), endpoint(t, resource)); err == nil {
			t.Errorf("%s = %+v, want it refused", name, id)
		}
	}
	mustRefuse(t, j, with("JWT", client, noScope), "says that it is an access token")
	if _, err := j.Authenticate(sending(with("JWT", api, nil)), endpoint(t, "https://mcp.example.com/mcp/other")); err != nil {
		t.Errorf("an audience at another endpoint that has it = %v", err)
	}
}

// A scope that clients ask for by the name of the resource is in tokens of Entra ID without it,
// and of no other resource.
func TestScopesByResource(t *testing.T) {
	for _, tt := range []struct {
		want, has string
		accepted  bool
	}{
		{resource + "/mcp.use", "mcp.use", true}, {"api://mcp/mcp.use", "mcp.use", true}, {"api://mcp/mcp.use", "api://mcp/mcp.use", true},
		{"api://other/mcp.use", "mcp.use", false}, {"api://mcp/mcp.use", "mcp.us", false}, {"api://mcp/", "mcp.use", false}, {"mcp.use", "api://mcp/mcp.use", false},
		{"api://mcp/mcp.use", "other", false}, {"api://mcpmcp.use", "mcp.use", false},
	} {
		i, j := newJWT(t, func(o *JWTOptions) { o.Audiences, o.Scopes = []string{"api://mcp"}, []string{tt.want} })
		_, err := j.Authenticate(sending(i.Token(resource, map[string]any{"scope": nil, "scp": tt.has})), endpoint(t, resource))
		if (err == nil) != tt.accepted {
			t.Errorf("with scopes %s scp %s = %v, want accepted = %v", tt.want, tt.has, err, tt.accepted)
		}
	}
}

// What an issuer says of an opaque token says that it is for access, unless it says otherwise.
func TestAudiencesOfOpaqueTokens(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) {
		o.Audiences, o.Introspection = []string{"client"}, &Introspection{"gateway", "secret"}
	})
	i.SetOpaque("access", inspected(map[string]any{"aud": "client", "scope": nil}))
	i.SetOpaque("refresh", inspected(map[string]any{"aud": "client", "typ": "Refresh"}))
	i.SetOpaque("elsewhere", inspected(map[string]any{"aud": "another"}))
	mustAccept(t, j, "access")
	mustRefuse(t, j, "refresh", "not for access")
	mustRefuse(t, j, "elsewhere", "aud")
}
