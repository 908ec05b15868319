package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// age makes the keys, and what was done for them, older.
func (s *keySet) age(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range []*time.Time{&s.loaded, &s.tried} {
		if !at.IsZero() {
			*at = at.Add(-d)
		}
	}
}

// settle waits for what is being fetched.
func (s *keySet) settle() {
	s.mu.Lock()
	fetching := s.fetching
	s.mu.Unlock()
	if fetching != nil {
		<-fetching
	}
}

func mustAccept(t *testing.T, j *JWT, token string) *mcp.Identity {
	t.Helper()
	id, err := j.Authenticate(sending(token), endpoint(t, resource))
	if err != nil {
		t.Fatalf("Authenticate() = %v, want the token accepted", err)
	}
	return id
}

// The log names the issuer by its URL.
func TestIssuerInTheLog(t *testing.T) {
	var log bridgetest.Log
	i, j := newJWT(t, func(o *JWTOptions) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	i.Override(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) })
	if _, err := j.Authenticate(sending(i.Token(resource, nil)), endpoint(t, resource)); err == nil {
		t.Error("a token is accepted without keys")
	}
	if want := `"issuer":"` + i.URL + `"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %s, want %s in it", &log, want)
	}
}

func mustRefuse(t *testing.T, j *JWT, token, reason string) {
	t.Helper()
	_, err := j.Authenticate(sending(token), endpoint(t, resource))
	var r *Refusal
	if !errors.As(err, &r) || !strings.Contains(r.Reason, reason) {
		t.Fatalf("Authenticate() = %v, want it refused: %s", err, reason)
	}
}

// A new key is found, once a minute has passed since the keys were fetched last.
func TestRotatedKeys(t *testing.T) {
	i, j := newJWT(t, nil)
	first := i.Key()
	mustAccept(t, j, i.Token(resource, nil))
	second := issuertest.NewKey(t, "k2", "RS256")
	i.SetKeys(second, first)
	mustRefuse(t, j, i.Token(resource, nil), `no key "k2"`)
	j.keys.age(refetchAfter)
	mustAccept(t, j, i.Token(resource, nil))
	if n := i.Fetched("/keys"); n != 2 {
		t.Errorf("the keys were fetched %d times, want 2", n)
	}
}

// A token that was verified is dropped with its key, whose issuer says nothing else of it.
func TestWithdrawnKey(t *testing.T) {
	i, j := newJWT(t, nil)
	token := i.Token(resource, nil)
	id := mustAccept(t, j, token)
	if again := mustAccept(t, j, token); again != id {
		t.Error("the token was verified twice")
	}
	i.SetKeys(issuertest.NewKey(t, "k2", "ES256"))
	j.keys.age(refreshAfter)
	mustAccept(t, j, i.Token(resource, map[string]any{"sub": "bob"})) // has the keys fetched
	mustRefuse(t, j, token, `no key "k1"`)
	if err := id.Verify(t.Context()); err == nil {
		t.Error("Verify() = nil, want the credential of an open stream refused")
	}
}

// A key that was replaced under the same id is another key.
func TestReplacedKey(t *testing.T) {
	i, j := newJWT(t, nil)
	token := i.Token(resource, nil)
	mustAccept(t, j, token)
	i.SetKeys(issuertest.NewKey(t, "k1", "ES256"))
	j.keys.age(refreshAfter)
	j.keys.refresh()
	j.keys.settle()
	mustRefuse(t, j, token, "signature")
	mustAccept(t, j, i.Token(resource, nil))
}

// While the issuer is down the last keys stay, and when it is back nobody has to do
// anything.
func TestLastGoodKeysStay(t *testing.T) {
	i, j := newJWT(t, nil)
	mustAccept(t, j, i.Token(resource, nil))
	i.Override(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for range 3 {
		j.keys.age(refreshAfter)
		mustAccept(t, j, i.Token(resource, map[string]any{"jti": time.Now().String()}))
		j.keys.settle()
	}
	i.Override(nil)
	i.SetKeys(issuertest.NewKey(t, "k2", "ES256"))
	j.keys.age(refetchAfter)
	mustAccept(t, j, i.Token(resource, nil))
}

// An issuer that was away just when its keys were needed has refused nobody: a token with a key that is
// not known may be good, and is accepted soon after the issuer is back.
func TestFailedFetchRefusesNobody(t *testing.T) {
	i, j := newJWT(t, nil)
	mustAccept(t, j, i.Token(resource, nil))
	i.SetKeys(issuertest.NewKey(t, "k2", "ES256"))
	j.keys.age(refetchAfter)
	i.Override(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for range 2 { // the second asks nobody
		if _, err := j.Authenticate(sending(i.Token(resource, nil)), endpoint(t, resource)); err == nil || errors.As(err, new(*Refusal)) {
			t.Fatalf("Authenticate() = %v, want what is no refusal", err)
		}
	}
	i.Override(nil)
	j.keys.age(retryAfter)
	mustAccept(t, j, i.Token(resource, nil))
	stranger := issuertest.NewKey(t, "k3", "ES256")
	i.SetKeys(stranger)
	mustRefuse(t, j, i.Token(resource, nil), "no key")
}

// Without the issuer there is no identity, and no refusal either: the token may be good.
func TestStartsWithoutIssuer(t *testing.T) {
	i, j := newJWT(t, nil)
	i.Override(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	var r *Refusal
	if _, err := j.Authenticate(sending(i.Token(resource, nil)), endpoint(t, resource)); err == nil || errors.As(err, &r) {
		t.Fatalf("Authenticate() = %v, want what is no refusal", err)
	}
	i.Override(nil)
	j.keys.age(retryAfter)
	mustAccept(t, j, i.Token(resource, nil))
}

// Requests that wait for a slow issuer are few, and end with their clients.
func TestWaitingIsBounded(t *testing.T) {
	i, j := newJWT(t, nil)
	held := make(chan struct{})
	i.Override(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(held) })
	token := i.Token(resource, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() { // ends with ctx
			_, err := j.Authenticate(sending(token).WithContext(ctx), &Endpoint{Resource: resource})
			done <- err
		}()
	}
	for waiting := 0; waiting < maxWaiting; time.Sleep(time.Millisecond) {
		j.keys.mu.Lock()
		waiting = j.keys.waiting
		j.keys.mu.Unlock()
	}
	begin := time.Now()
	_, err := j.Authenticate(sending(token), endpoint(t, resource))
	var busy *BusyError
	if !errors.As(err, &busy) || time.Since(begin) > 5*time.Second {
		t.Errorf("one more = %v after %v, want it refused at once for the limit", err, time.Since(begin))
	}
	cancel()
	for range maxWaiting {
		if err := <-done; err == nil {
			t.Error("a request without keys was accepted")
		}
	}
}

// Only keys for signatures are read, and a bounded number of them. One that can't be read
// does not hide the others.
func TestKeysThatAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		want      bool
	}{
		{"of an unknown kind", `{"kty":"new","kid":"a"}`, false},
		{"symmetric", `{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","kid":"a"}`, false},
		{"for encryption", `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","use":"enc"}`, false},
		{"private", `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}`, false},
		{"a short one", `{"kty":"RSA","e":"AQAB","n":"AKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit-CqvjWYzvQwECAwEAAQ"}`, false},
		{"for signatures", `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","use":"sig"}`, true},
	} {
		if got := readKey([]byte(tt.key)) != nil; got != tt.want {
			t.Errorf("%s: read = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A key that says for which algorithm it is is for no other, and a token without the id of
// a key is of the only one.
func TestLookup(t *testing.T) {
	rsa, ec := readableKey(t, "r", "RS256", "RS256"), readableKey(t, "e", "ES256", "")
	s := &keySet{keys: []*publicKey{rsa, ec}}
	for _, tt := range []struct {
		id, algorithm string
		want          *publicKey
	}{
		{"r", "RS256", rsa}, {"", "RS256", rsa}, {"e", "ES256", ec}, {"", "ES256", ec},
		{"r", "PS256", nil}, {"r", "ES256", nil}, {"e", "RS256", nil}, {"e", "ES384", nil}, {"x", "RS256", nil}, {"r", "none", nil}, {"r", "HS256", nil},
	} {
		if got := s.lookupLocked(tt.id, tt.algorithm); got != tt.want {
			t.Errorf("lookup(%q, %q) = %v, want %v", tt.id, tt.algorithm, got, tt.want)
		}
	}
	s.keys = append(s.keys, readableKey(t, "e2", "ES256", ""))
	if got := s.lookupLocked("", "ES256"); got != nil {
		t.Errorf("one of two keys was taken for a token that names none: %v", got.KeyID)
	}
}

func readableKey(t *testing.T, id, algorithm, says string) *publicKey {
	k := &publicKey{}
	k.Key, k.KeyID, k.Algorithm = issuertest.NewKey(t, id, algorithm).Private.Public(), id, says
	return k
}
