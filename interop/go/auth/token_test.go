package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// tokens are what the issuer gave.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Scope   string `json:"scope"`
}

// verifier is that of PKCE. It is no secret here.
const verifier = "a-verifier-of-a-test-that-is-as-long-as-it-has-to-be"

// login logs a user in as a client that has a metadata document, and returns tokens for a resource.
func (s *issuer) login(t testing.TB, user, resource, scope string) *tokens {
	t.Helper()
	got, err := s.loggedIn(user, resource, scope)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s *issuer) loggedIn(user, resource, scope string) (*tokens, error) {
	sum := sha256.Sum256([]byte(verifier))
	id := s.docs.id("tests")
	back, err := follow(s.url+"/auth?"+url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirect}, "scope": {scope}, "resource": {resource}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode(), user)
	if err != nil {
		return nil, err
	}
	if q := back.Query(); q.Get("error") != "" {
		return nil, fmt.Errorf("the authorization server sent the browser back with %s: %s", q.Get("error"), q.Get("error_description"))
	}
	return s.grant(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Query().Get("code")},
		"redirect_uri": {redirect}, "code_verifier": {verifier}, "resource": {resource},
	})
}

// refresh returns tokens for others.
func (s *issuer) refresh(t testing.TB, old *tokens) *tokens {
	t.Helper()
	got, err := s.refreshed(old)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s *issuer) refreshed(old *tokens) (*tokens, error) {
	return s.grant(url.Values{"grant_type": {"refresh_token"}, "client_id": {s.docs.id("tests")}, "refresh_token": {old.Refresh}})
}

func (s *issuer) grant(form url.Values) (*tokens, error) {
	res, err := http.PostForm(s.url+"/token", form)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var got struct {
		tokens
		Error, Description string
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		return nil, err
	}
	if got.Error != "" {
		return nil, fmt.Errorf("the authorization server answered %s: %s", res.Status, got.Error)
	}
	return &got.tokens, nil
}

// claims returns what a JWT says, unverified.
func claims(t testing.TB, token string) (of map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}
