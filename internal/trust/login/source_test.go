package login

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// refusal is a server's answer to a value.
func refusal(status int, value, challenge string, attempt int) upstream.CredentialRefusal {
	return upstream.CredentialRefusal{Value: value, Status: status, Header: http.Header{"Www-Authenticate": {challenge}}, Attempt: attempt}
}

const lacking = `Bearer error="insufficient_scope", scope="write admin"`

func identity(p mcp.Principal, token string) *mcp.Identity {
	id := &mcp.Identity{Principal: p}
	id.SetToken(token)
	return id
}

// storedOf returns the credentials of a login that was just made.
func storedOf(t *testing.T, r *rig, f *Flow) *Stored {
	t.Helper()
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	return NewStored(StoredOptions{Server: "docs", HTTP: r.http(), Keeper: f.Store.KeeperOf(r.url())})
}

func TestStored(t *testing.T) {
	r := newRig(t)
	s := storedOf(t, r, r.flow())
	value, err := s.Authorization(testContext(t), upstream.Behalf{})
	if value != "Bearer access-1" || err != nil {
		t.Fatalf("Authorization = %q, %v, want the stored token", value, err)
	}
	value, err = s.Renew(testContext(t), refusal(http.StatusUnauthorized, value, "", 1))
	if value != "Bearer access-2" || err != nil {
		t.Fatalf("Renew = %q, %v, want a refreshed token", value, err)
	}
	if form := r.forms()[1]; form.Get("resource") != r.url() || form.Get("refresh_token") != "refresh-1" || form.Get("client_id") != "client-1" {
		t.Errorf("refresh request = %v, want the resource and the client", form)
	}
	_, err = s.Renew(testContext(t), refusal(http.StatusUnauthorized, value, "", 2))
	wantError(t, err, "does not accept the stored login")
	var c *upstream.CredentialError
	if !errors.As(err, &c) || c.Step != "run mcpbridge login docs" {
		t.Errorf("error %v says to do %q, want to log in", err, c.Step)
	}
}

// A token that has expired is refreshed before it is sent. The one that replaces it is
// stored: the next process finds it.
func TestStoredRefreshesEarly(t *testing.T) {
	r := newRig(t)
	r.life = 1
	f := r.flow()
	s := storedOf(t, r, f)
	r.life = 3600
	if value, err := s.Authorization(testContext(t), upstream.Behalf{}); value != "Bearer access-2" || err != nil {
		t.Fatalf("Authorization = %q, %v, want a refreshed token", value, err)
	}
	if l, err := f.Store.Load(r.url()); err != nil || l.Token.AccessToken != "access-2" || l.Token.RefreshToken != "refresh-2" {
		t.Errorf("stored: %+v, %v, want the refreshed token", l, err)
	}
}

// A login that another process removes or replaces is not used any more when the store was
// looked at again, though its token is valid.
func TestStoredFollowsTheStore(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	s := storedOf(t, r, f)
	value := func() (string, error) { return s.Authorization(testContext(t), upstream.Behalf{}) }
	later := func() { s.began = s.began.Add(-lookEvery) } // as if time had passed
	if got, err := value(); got != "Bearer access-1" || err != nil {
		t.Fatalf("Authorization = %q, %v", got, err)
	}
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	if got, err := value(); got != "Bearer access-1" || err != nil {
		t.Errorf("Authorization = %q, %v, want the token that is known: the store is looked at seldom", got, err)
	}
	if later(); s.holder.now.Load() == nil {
		t.Fatal("there is no token")
	}
	if got, err := value(); got != "Bearer access-2" || err != nil {
		t.Errorf("after another login Authorization = %q, %v, want its token", got, err)
	}
	if revoked, err := Logout(testContext(t), r.http(), OpenStore(StoreOptions{Dir: f.Store.dir, NoKeyring: true}), r.url()); err != nil || revoked != nil {
		t.Fatal(revoked, err)
	}
	later()
	_, err := value()
	wantError(t, err, "wants a login, and there is none")
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	s.holder.failed.Store(nil) // as if time had passed
	if got, err := value(); got != "Bearer access-3" || err != nil {
		t.Errorf("after the next login Authorization = %q, %v, want its token", got, err)
	}
}

// What belongs to callers' tokens that have expired is forgotten when others come, and its
// tokens need not be hidden any more.
func TestExchangesOfExpiredTokensAreForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e, err := TokenExchange(IssuerOptions{HTTP: r.http(), Issuer: r.as.URL, Resource: r.url(), ClientID: "service", ClientSecret: "s3cret", Secrets: redact.New()})
	if err != nil {
		t.Fatal(err)
	}
	send := func(n int, ends time.Time) {
		t.Helper()
		id := identity(mcp.Principal(fmt.Sprint("user", n)), fmt.Sprint("token", n))
		id.Expires = ends
		e.Saw(id)
		if _, err := e.Authorization(testContext(t), upstream.Behalf{Principal: id.Principal, Identity: id}); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(10 * time.Second) // all are sent by then, on a busy machine too
	for n := range 5 {
		send(n, end)
	}
	if e.holders.Len() != 5 || e.last.Len() != 5 {
		t.Errorf("%d exchanged tokens of %d callers are known, want 5", e.holders.Len(), e.last.Len())
	}
	time.Sleep(time.Until(end))
	if send(5, time.Now().Add(time.Hour)); e.holders.Len() != 1 || e.last.Len() != 1 {
		t.Errorf("%d exchanged tokens of %d callers are known, want the last", e.holders.Len(), e.last.Len())
	}
}

// Tokens that a login, a client or an exchange brings are hidden like those of the
// configuration.
func TestTokensAreHidden(t *testing.T) {
	r, secrets := newRig(t), redact.New()
	f := r.flow()
	storedOf(t, r, f)
	s := NewStored(StoredOptions{Server: "docs", HTTP: r.http(), Keeper: f.Store.KeeperOf(r.url()), Secrets: secrets})
	hidden := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if got := secrets.String("the server said " + text); strings.Contains(got, text) {
				t.Errorf("%s is not hidden", text)
			}
		}
	}
	value, err := s.Authorization(testContext(t), upstream.Behalf{})
	if err != nil {
		t.Fatal(err)
	}
	hidden("access-1", "refresh-1")
	if _, err = s.Renew(testContext(t), refusal(http.StatusUnauthorized, value, "", 1)); err != nil {
		t.Fatal(err)
	}
	hidden("access-2", "refresh-2", "access-1")
	o := IssuerOptions{HTTP: r.http(), Issuer: r.as.URL, Resource: r.url(), ClientID: "service", ClientSecret: "s3cret", Secrets: secrets}
	own, err := ClientCredentials(o)
	if err == nil {
		_, err = own.Authorization(testContext(t), upstream.Behalf{})
	}
	if err != nil {
		t.Fatal(err)
	}
	hidden("access-3")
	e, err := TokenExchange(o)
	if err == nil {
		_, err = e.Authorization(testContext(t), upstream.Behalf{Principal: "ada", Identity: identity("ada", "caller")})
	}
	if err != nil {
		t.Fatal(err)
	}
	hidden("access-4")
	s.Close()
	hidden("access-2") // an error may have it still
	for n := range 100 {
		secrets.Replace([]string{fmt.Sprint("another-", n)}, fmt.Sprint("another-", n+1))
	}
	if got := secrets.String("access-2"); got != "access-2" {
		t.Errorf("the token of credentials that were closed long ago is %s", got)
	}
	hidden("access-3", "access-4")
}

// Five processes need another token at once: one refreshes, the others have what it got.
// Each has a Store and a lock of its own, as processes have.
func TestOneRefreshes(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	storedOf(t, r, f)
	oneRefreshes(t, r, f, r.url())
}

// So it is if they use several URLs of one server, which have one login.
func TestOneRefreshesForSeveralURLs(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	storedOf(t, r, f)
	other := *f
	other.URL += "?project=b"
	if _, err := other.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	oneRefreshes(t, r, f, r.url(), other.URL)
}

// oneRefreshes has five processes, of several URLs whose login was made last, need another token.
func oneRefreshes(t *testing.T, r *rig, f *Flow, urls ...string) {
	t.Helper()
	logins, want := len(r.forms()), fmt.Sprint("Bearer access-", len(r.forms())+1)
	values := make([]string, 5)
	var all, had sync.WaitGroup // had: all have the token that is refused
	had.Add(len(values))
	r.onToken = func(http.ResponseWriter, url.Values) bool {
		had.Wait()
		time.Sleep(100 * time.Millisecond)
		return false
	}
	for i := range values {
		all.Go(func() {
			s := NewStored(StoredOptions{HTTP: r.http(), Keeper: OpenStore(StoreOptions{Dir: f.Store.dir, NoKeyring: true}).KeeperOf(urls[i%len(urls)])})
			value, err := s.Authorization(testContext(t), upstream.Behalf{})
			had.Done()
			if err == nil {
				value, err = s.Renew(testContext(t), refusal(http.StatusUnauthorized, value, "", 1))
			}
			if err != nil {
				t.Error(err)
			}
			values[i] = value
		})
	}
	all.Wait()
	if n := len(r.forms()) - logins; n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	if slices.ContainsFunc(values, func(v string) bool { return v != want }) {
		t.Errorf("values = %q, want the refreshed token, %s, for all", values, want)
	}
}

// Many requests of one process wait for one refresh, and all fail with it.
func TestRefreshFailsOnce(t *testing.T) {
	r := newRig(t)
	s := storedOf(t, r, r.flow())
	r.onToken = func(w http.ResponseWriter, _ url.Values) bool {
		time.Sleep(50 * time.Millisecond)
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "Bearer access-1", "", 1))
			wantError(t, err, "HTTP 502")
		})
	}
	all.Wait()
	if n := len(r.forms()) - 1; n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

// A login that has ended says what to do; another login is found without a restart.
func TestStoredEnds(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	s := storedOf(t, r, f)
	r.mu.Lock()
	r.refresh = "revoked"
	r.mu.Unlock()
	_, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "Bearer access-1", "", 1))
	wantError(t, err, "invalid_grant")
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(failurePause)
	value, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "Bearer access-1", "", 1))
	if value != "Bearer access-2" || err != nil {
		t.Errorf("Renew = %q, %v, want the new login", value, err)
	}
}

// A server that wants more scopes is said so, with the command that gets them.
func TestStoredLacksScopes(t *testing.T) {
	r := newRig(t)
	s := storedOf(t, r, r.flow())
	_, err := s.Renew(testContext(t), refusal(http.StatusForbidden, "Bearer access-1", lacking, 1))
	wantError(t, err, "wants the scopes write admin")
	var c *upstream.CredentialError
	if !errors.As(err, &c) || c.Step != "run mcpbridge login docs --scope write --scope admin" {
		t.Errorf("step = %q, want a login with the scopes", c.Step)
	}
	value, err := s.Renew(testContext(t), refusal(http.StatusForbidden, "Bearer access-1", "", 1))
	if value != "" || err != nil {
		t.Errorf("Renew of another 403 = %q, %v, want neither", value, err)
	}
}

// A login on demand is made once for all requests that wait, with the scopes that were
// granted and those that lack.
//
// Spec: 2026-07-28, basic/authorization, Step-Up Authorization Flow.
func TestLoginOnDemand(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	s := NewStored(StoredOptions{Server: "docs", HTTP: r.http(), Keeper: f.Store.KeeperOf(r.url()), Flow: f})
	defer s.Close()
	value, err := s.Authorization(testContext(t), upstream.Behalf{})
	if value != "" || err != nil {
		t.Fatalf("Authorization without a login = %q, %v, want none: the server may want none", value, err)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			challenge := fmt.Sprintf("Bearer resource_metadata=%q", r.challenge().ResourceMetadata)
			value, err := s.Renew(testContext(t), refusal(http.StatusUnauthorized, "", challenge, 1))
			if value != "Bearer access-1" || err != nil {
				t.Errorf("Renew = %q, %v, want the login's token", value, err)
			}
		})
	}
	all.Wait()
	value, err = s.Renew(testContext(t), refusal(http.StatusForbidden, "Bearer access-1", lacking, 1))
	if value != "Bearer access-2" || err != nil {
		t.Fatalf("Renew = %q, %v, want another login's token", value, err)
	}
	if l, err := f.Store.Load(r.url()); err != nil || !slices.Equal(l.Scopes, []string{"read", "write", "admin"}) {
		t.Errorf("scopes = %v, %v, want all", l, err)
	}
}

// A stored login is one principal's.
func TestStoredIsOnePrincipals(t *testing.T) {
	r := newRig(t)
	s := storedOf(t, r, r.flow())
	s.Principal = "ada"
	for _, tt := range []struct {
		p  mcp.Principal
		ok bool
	}{{"ada", true}, {"", true}, {"eve", false}, {mcp.Anonymous, false}} {
		value, err := s.Authorization(testContext(t), upstream.Behalf{Principal: tt.p})
		if (value != "") != tt.ok || (err == nil) != tt.ok {
			t.Errorf("%q: Authorization = %q, %v, want ok %v", tt.p, value, err, tt.ok)
		}
	}
	_, err := s.Renew(testContext(t), upstream.CredentialRefusal{Behalf: upstream.Behalf{Principal: "eve"}, Status: 401, Attempt: 1})
	wantError(t, err, "on behalf of another principal")
}

func (r *rig) issuer() IssuerOptions {
	return IssuerOptions{HTTP: r.http(), Issuer: r.as.URL, Resource: r.url(), ClientID: "gateway", ClientSecret: "a secret", Scopes: []string{"read"}}
}

// Spec: ext-auth, oauth-client-credentials.
func TestClientCredentials(t *testing.T) {
	for _, tt := range []struct {
		method string
		basic  bool
	}{{"client_secret_basic", true}, {"client_secret_post", false}} {
		t.Run(tt.method, func(t *testing.T) {
			r := newRig(t)
			r.meta["token_endpoint_auth_methods_supported"] = []string{tt.method}
			c, err := ClientCredentials(r.issuer())
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if value, err := c.Authorization(testContext(t), upstream.Behalf{Principal: "ada"}); value != "Bearer access-1" || err != nil {
					t.Fatalf("Authorization = %q, %v, want one token", value, err)
				}
			}
			form := r.forms()[0]
			if form.Get("grant_type") != grantClient || form.Get("resource") != r.url() || form.Get("scope") != "read" || (form.Get("client_secret") == "") != tt.basic || form.Get("client_id") != "gateway" {
				t.Errorf("form = %v", form)
			}
			value, err := c.Renew(testContext(t), refusal(http.StatusForbidden, "Bearer access-1", lacking, 1))
			if value != "Bearer access-2" || err != nil || r.forms()[1].Get("scope") != "read write admin" {
				t.Errorf("Renew = %q, %v, scopes %q, want all", value, err, r.forms()[1].Get("scope"))
			}
			_, err = c.Renew(testContext(t), refusal(http.StatusUnauthorized, value, "", 2))
			wantError(t, err, "refuses the token that was issued for it")
		})
	}
}

// Spec: RFC 7523, 3.
func TestPrivateKeyJWT(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	o := r.issuer()
	o.ClientSecret, o.PrivateKey, o.KeyID = "", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "k1"
	c, err := ClientCredentials(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Authorization(testContext(t), upstream.Behalf{}); err != nil {
		t.Fatal(err)
	}
	form := r.forms()[0]
	if form.Get("client_assertion_type") != assertionTypeJWT || form.Has("client_id") || form.Has("client_secret") {
		t.Errorf("form = %v, want an assertion alone", form)
	}
	token, err := jwt.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := token.Claims(&key.PublicKey, &claims); err != nil {
		t.Fatal(err)
	}
	if err := claims.ValidateWithLeeway(jwt.Expected{Issuer: "gateway", Subject: "gateway", AnyAudience: jwt.Audience{r.as.URL}}, 0); err != nil || claims.ID == "" || len(claims.Audience) != 1 {
		t.Errorf("claims = %+v, %v, want the client's for the issuer alone", claims, err)
	}
	if token.Headers[0].KeyID != "k1" {
		t.Errorf("kid = %q, want k1", token.Headers[0].KeyID)
	}
}

// Spec: RFC 8693, 2.
func TestTokenExchange(t *testing.T) {
	r := newRig(t)
	o := r.issuer()
	o.Audience = "tools"
	e, err := TokenExchange(o)
	if err != nil {
		t.Fatal(err)
	}
	if value, err := e.Authorization(testContext(t), upstream.Behalf{}); value != "" || err != nil {
		t.Errorf("for the gateway itself: %q, %v, want no header", value, err)
	}
	ada := upstream.Behalf{Principal: "ada", Identity: identity("ada", "token of ada")}
	value, err := e.Authorization(testContext(t), ada)
	if value != "Bearer access-1" || err != nil {
		t.Fatalf("Authorization = %q, %v", value, err)
	}
	form := r.forms()[0]
	for name, want := range map[string]string{"grant_type": grantExchange, "subject_token": "token of ada", "subject_token_type": typeAccessToken, "audience": "tools", "resource": r.url()} {
		if form.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, form.Get(name), want)
		}
	}
	if again, _ := e.Authorization(testContext(t), ada); again != value {
		t.Errorf("the same token was exchanged for %q and %q", value, again)
	}
	bob, err := e.Authorization(testContext(t), upstream.Behalf{Principal: "bob", Identity: identity("bob", "token of bob")})
	if bob == value || err != nil {
		t.Errorf("another caller's = %q, %v, want one of its own", bob, err)
	}
	e.Saw(ada.Identity)
	if stream, err := e.Authorization(testContext(t), upstream.Behalf{Principal: "ada"}); stream != value || err != nil {
		t.Errorf("outside of a request = %q, %v, want that of ada's last token", stream, err)
	}
	_, err = e.Authorization(testContext(t), upstream.Behalf{Principal: "carol"})
	wantError(t, err, "there is none that is valid")
}

// Under wrap a person logs in before the first request, if the server wants that and there
// is no login.
func TestReady(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	s := NewStored(StoredOptions{Server: "docs", HTTP: r.http(), Keeper: f.Store.KeeperOf(r.url()), Flow: f})
	defer s.Close()
	for range 2 {
		if err := s.Ready(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	if value, err := s.Authorization(testContext(t), upstream.Behalf{}); value != "Bearer access-1" || err != nil || r.issued != 1 {
		t.Errorf("Authorization = %q, %v, %d logins, want that of one", value, err, r.issued)
	}
	open := newRig(t)
	open.rs.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	f = open.flow()
	f.Browse = func(string) error { t.Error("a person was asked to log in"); return nil }
	s = NewStored(StoredOptions{HTTP: open.http(), Keeper: f.Store.KeeperOf(open.url()), Flow: f})
	defer s.Close()
	if err := s.Ready(testContext(t)); err != nil {
		t.Error(err)
	}
}
