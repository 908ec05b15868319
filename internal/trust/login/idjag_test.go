package login

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// tokenServer is an authorization server that answers requests for tokens as issue says, and keeps
// what they asked for.
type tokenServer struct {
	*httptest.Server
	asked []url.Values
	users []string // by whom, with basic authentication
}

func newTokenServer(t *testing.T, issue func(url.Values) map[string]any) *tokenServer {
	t.Helper()
	s := new(tokenServer)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": s.URL, "token_endpoint": s.URL + "/token", "token_endpoint_auth_methods_supported": []string{"client_secret_basic"}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		user, _, _ := r.BasicAuth()
		s.asked, s.users = append(s.asked, r.PostForm), append(s.users, user)
		answer(w, issue(r.PostForm))
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// The identity provider issues a grant for the caller, for the server's own authorization server,
// and that one a token for the grant. The caller's token goes to the provider alone.
func TestIDJAG(t *testing.T) {
	idp := newTokenServer(t, func(q url.Values) map[string]any {
		return map[string]any{"issued_token_type": typeIDJAG, "token_type": "N_A", "access_token": "grant-for-" + q.Get("subject_token"), "expires_in": 300}
	})
	as := newTokenServer(t, func(q url.Values) map[string]any {
		return map[string]any{"token_type": "Bearer", "access_token": "for-" + q.Get("assertion"), "expires_in": 300, "refresh_token": "unused-refresh"}
	})
	e := byGrants(t, idp, as)
	for who, token := range map[mcp.Principal]string{"ada": "token-of-ada", "bob": "token-of-bob"} {
		value, err := e.Authorization(testContext(t), upstream.Behalf{Principal: "p", Identity: identity(who, token)})
		if err != nil || value != "Bearer for-grant-for-"+token {
			t.Errorf("Authorization for %s = %q, %v", who, value, err)
		}
	}
	first, second := idp.asked[0], as.asked[0]
	for name, want := range map[string]string{
		"grant_type": grantExchange, "requested_token_type": typeIDJAG, "audience": as.URL, "resource": "https://server.example/mcp", "scope": "read", "subject_token_type": typeAccessToken,
	} {
		if got := first.Get(name); got != want {
			t.Errorf("the provider is asked with %s %q, want %q", name, got, want)
		}
	}
	if second.Get("grant_type") != grantJWTBearer || !strings.HasPrefix(second.Get("assertion"), "grant-for-") || second.Has("subject_token") {
		t.Errorf("the server's issuer is asked with %v", second)
	}
	if !slices.Equal(idp.users, []string{"at-idp", "at-idp"}) || !slices.Equal(as.users, []string{"at-as", "at-as"}) {
		t.Errorf("asked as %q and %q, want each as its own client", idp.users, as.users)
	}
}

// byGrants returns credentials by grants of one server for another.
func byGrants(t *testing.T, idp, as *tokenServer) *Exchange {
	t.Helper()
	client := fetch.New(fetch.Options{Near: []string{idp.URL}})
	e, err := TokenExchange(IssuerOptions{HTTP: client, Issuer: idp.URL, ClientID: "at-idp", ClientSecret: "x", Resource: "https://server.example/mcp", Scopes: []string{"read"},
		IDJAG: &IssuerOptions{HTTP: client, Issuer: as.URL, ClientID: "at-as", ClientSecret: "y"}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is no grant is sent nowhere: it may be an access token.
func TestIDJAGIsNothingElse(t *testing.T) {
	for name, answer := range map[string]map[string]any{
		"an access token": {"issued_token_type": typeAccessToken, "token_type": "Bearer", "access_token": "an-access-token"},
		"nothing said":    {"token_type": "Bearer", "access_token": "an-access-token"},
		"too large":       {"issued_token_type": typeIDJAG, "token_type": "N_A", "access_token": strings.Repeat("x", maxToken+1)},
	} {
		idp := newTokenServer(t, func(url.Values) map[string]any { return answer })
		as := newTokenServer(t, func(url.Values) map[string]any { return map[string]any{"token_type": "Bearer", "access_token": "y"} })
		_, err := byGrants(t, idp, as).Authorization(context.Background(), upstream.Behalf{Principal: "p", Identity: identity("ada", "token-of-ada")})
		if err == nil || len(as.asked) != 0 {
			t.Errorf("%s: %v, and the server's issuer was asked %d times", name, err, len(as.asked))
		}
	}
}
