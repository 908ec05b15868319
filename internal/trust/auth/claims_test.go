package auth

import (
	"testing"
)

// A claim is found by its name, or by its path: as Keycloak has its roles, below the names of
// clients, which may be URLs.
func TestClaimsByPath(t *testing.T) {
	i, j := newJWT(t, func(o *JWTOptions) {
		o.Claims = []string{"groups", "realm_access.roles", "resource_access.https://mcp.example.com/mcp/notes.roles", "a.b", "realm_access", "none.roles", "groups.0", "realm_access."}
		o.PrincipalClaims = []string{"tenant.id"}
	})
	token := i.Token(resource, map[string]any{
		"groups":       []string{"x"},
		"realm_access": map[string]any{"roles": []string{"admin"}},
		"resource_access": map[string]any{
			"https://mcp": "no object", "https://mcp.example.com/mcp/notes": map[string]any{"roles": []string{"writer"}},
		},
		"a": map[string]any{"b": "below"}, "a.b": "by its name",
		"tenant": map[string]any{"id": "7"},
	})
	id, err := j.Authenticate(sending(token), endpoint(t, resource))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"groups": `["x"]`, "realm_access.roles": `["admin"]`, "resource_access.https://mcp.example.com/mcp/notes.roles": `["writer"]`,
		"a.b": `"by its name"`, "realm_access": `{"roles":["admin"]}`, "none.roles": "", "groups.0": "", "realm_access.": "",
	} {
		if got := string(id.Claims[name]); got != want {
			t.Errorf("the claim %s is %s, want %s", name, got, want)
		}
	}
	if want := i.URL + " ada tenant.id=7"; string(id.Principal) != want {
		t.Errorf("the principal is %s, want %s", id.Principal, want)
	}
	if _, err := j.Authenticate(sending(i.Token(resource, map[string]any{"tenant": map[string]any{"id": 7}})), endpoint(t, resource)); err == nil {
		t.Error("a number as part of the principal is accepted")
	}
}
