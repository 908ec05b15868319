package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// slowly has an issuer take a while for each answer, in the time of a synctest bubble: that can't
// pass while somebody waits for a socket.
type slowly struct {
	*issuertest.Issuer
	takes time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// With an issuer that takes 5 s for each answer, a new token waits for as many as it needs and
// is accepted, and one that is in use never waits for the keys that are fetched again.
func TestSlowIssuer(t *testing.T) {
	i := issuertest.New(t)
	synctest.Test(t, func(t *testing.T) {
		client := fetch.New(fetch.Options{Near: []string{i.URL}})
		client.HTTP().Transport = slowly{i, 5 * time.Second}
		j, err := NewJWT(JWTOptions{Issuer: i.URL, Client: client, Introspection: &Introspection{"gateway", "secret"}})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		takes := func(what, token string, want time.Duration) {
			t.Helper()
			began := time.Now()
			mustAccept(t, j, token)
			if took := time.Since(began); took != want {
				t.Errorf("%s took %v, want %v", what, took, want)
			}
		}
		i.SetOpaque("opaque", inspected(nil))
		used := i.Token(resource, map[string]any{"exp": time.Now().Add(3 * time.Hour).Unix()})
		takes("the first token", used, 15*time.Second)            // two places of metadata, and the keys
		takes("a token that is no JWT", "opaque", 15*time.Second) // the same, and what is said of it
		takes("the same token", "opaque", 0)                      // it is known
		i.SetOpaque("another", inspected(nil))
		takes("another that is no JWT", "another", 5*time.Second) // the metadata is known
		i.SetKeys(issuertest.NewKey(t, "k2", "ES256"), i.Key())   // the issuer signs with a new key
		time.Sleep(2 * refreshAfter)                              // the token has to be verified again, and the keys are old
		takes("a token in use", used, 0)                          // while they are fetched
		takes("a token with a new key", i.Token(resource, nil), 15*time.Second)
		takes("a token in use, afterwards", used, 0)
	})
}

// silent has an issuer not answer where its metadata is, from some time on.
type silent struct {
	*issuertest.Issuer
	from time.Time
}

// RoundTrip implements [http.RoundTripper].
func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/.well-known/") && !time.Now().Before(s.from) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// Metadata that is old and can't be fetched again holds up no question about a token, as long as
// the endpoint that it has named answers.
func TestOldMetadata(t *testing.T) {
	i := issuertest.New(t)
	synctest.Test(t, func(t *testing.T) {
		client := fetch.New(fetch.Options{Near: []string{i.URL}})
		client.HTTP().Transport = silent{i, time.Now().Add(time.Minute)}
		j, err := NewJWT(JWTOptions{Issuer: i.URL, Client: client, Introspection: &Introspection{"gateway", "secret"}})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		for n := range 4 {
			token := fmt.Sprint("opaque-", n)
			i.SetOpaque(token, inspected(map[string]any{"exp": time.Now().Add(time.Hour).Unix()}))
			began := time.Now()
			mustAccept(t, j, token)
			if took := time.Since(began); took != 0 {
				t.Errorf("a token took %v after %d periods, want that it waits for no metadata", took, n)
			}
			time.Sleep(metadataAge)
		}
	})
}

// An issuer that does not answer is asked once: who waits for it hears of it after 10 s.
func TestIssuerWithoutAnswer(t *testing.T) {
	i := issuertest.New(t)
	synctest.Test(t, func(t *testing.T) {
		client := fetch.New(fetch.Options{Near: []string{i.URL}})
		client.HTTP().Transport = slowly{i, time.Hour}
		j, err := NewJWT(JWTOptions{Issuer: i.URL, Client: client, Introspection: &Introspection{"gateway", "secret"}})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		for _, token := range []string{i.Token(resource, nil), "opaque"} {
			began := time.Now()
			_, err := j.Authenticate(sending(token), endpoint(t, resource))
			if took := time.Since(began); err == nil || errors.As(err, new(*Refusal)) || took != fetchTimeout {
				t.Errorf("Authenticate() = %v after %v, want what is no refusal after %v", err, took, fetchTimeout)
			}
		}
	})
}
