package login

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A login finds out who issues tokens, registers, and gets a token for the server.
//
// Spec: 2026-07-28, basic/authorization, Authorization Flow Steps.
func TestFlow(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	status, challenge, err := f.Ask(testContext(t))
	if err != nil || status != http.StatusUnauthorized || challenge != r.challenge() {
		t.Fatalf("Ask = %d, %+v, %v, want 401 and the metadata's URL", status, challenge, err)
	}
	l, err := f.Run(testContext(t), challenge)
	if err != nil {
		t.Fatal(err)
	}
	if l.Token.AccessToken != "access-1" || l.Token.RefreshToken != "refresh-1" || l.Token.Expires.IsZero() {
		t.Errorf("token = %+v, want the first with an end", l.Token)
	}
	form := r.forms()[0]
	for name, want := range map[string]string{"resource": r.url(), "client_id": "client-1", "grant_type": grantCode} {
		if form.Get(name) != want {
			t.Errorf("token request: %s = %q, want %q", name, form.Get(name), want)
		}
	}
	reg := r.regs[0]
	if reg["application_type"] != "native" || reg["token_endpoint_auth_method"] != "none" || !strings.Contains(reg["redirect_uris"].([]any)[0].(string), "http://127.0.0.1:") {
		t.Errorf("registration = %v, want a native client without a secret", reg)
	}
	stored, err := f.Store.Load(r.url())
	if err != nil || stored.Token.AccessToken != l.Token.AccessToken || stored.Issuer != r.as.URL || stored.Resource != r.url() {
		t.Errorf("Load = %+v, %v, want the login", stored, err)
	}
}

// Spec: 2026-07-28, basic/authorization, Resource Parameter Implementation; Scope Selection
// Strategy.
func TestFlowAsksForResourceAndScopes(t *testing.T) {
	for _, tt := range []struct {
		name      string
		challenge string
		supported any
		flags     []string
		offline   bool
		want      string
	}{
		{"challenge first", "files:read", []string{"all"}, nil, false, "files:read"},
		{"then the metadata", "", []string{"a", "b"}, nil, false, "a b"},
		{"neither", "", nil, nil, false, ""},
		{"with those wanted", "x", nil, []string{"y"}, false, "y x"},
		{"offline_access where it is known", "x", nil, nil, true, "x offline_access"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.prm["scopes_supported"] = tt.supported
			if tt.offline {
				r.meta["scopes_supported"] = []string{"openid", "offline_access"}
			}
			f := r.flow()
			f.Scopes = tt.flags
			var asked url.Values
			f.Browse = func(to string) error {
				u, err := url.Parse(to)
				if err == nil {
					asked = u.Query()
					err = r.browse(to)
				}
				return err
			}
			c := r.challenge()
			c.Scope = tt.challenge
			if _, err := f.Run(testContext(t), c); err != nil {
				t.Fatal(err)
			}
			if asked.Get("scope") != tt.want || asked.Get("resource") != r.url() || asked.Get("code_challenge_method") != "S256" {
				t.Errorf("authorization request = %v, want scope %q, the resource and S256", asked, tt.want)
			}
		})
	}
}

// A client is the configured one, else a metadata document, else a registered one, which
// is used again.
//
// Spec: 2026-07-28, basic/authorization/client-registration.
func TestFlowChoosesClient(t *testing.T) {
	const document = "https://client.example/mcpbridge.json"
	for _, tt := range []struct {
		name         string
		id, metadata string
		documents    bool
		want         string
	}{
		{"configured", "mine", document, true, "mine"},
		{"document", "", document, true, document},
		{"document that the server does not know", "", document, false, "client-1"},
		{"registered", "", "", true, "client-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.meta["client_id_metadata_document_supported"] = tt.documents
			f := r.flow()
			f.ClientID, f.MetadataURL = tt.id, tt.metadata
			for range 2 {
				l, err := f.Run(testContext(t), r.challenge())
				if err != nil || l.Client.ID != tt.want {
					t.Fatalf("client = %+v, %v, want %q", l, err, tt.want)
				}
			}
		})
	}
}

// Clients are not used at another authorization server than their own.
//
// Spec: 2026-07-28, basic/authorization/client-registration, Authorization Server Binding.
func TestFlowRegistersAnewElsewhere(t *testing.T) {
	r, other := newRig(t), newRig(t)
	f := r.flow()
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	r.prm["authorization_servers"] = []string{other.as.URL}
	l, err := f.Run(testContext(t), r.challenge())
	if err != nil || l.Issuer != other.as.URL || len(other.regs) != 1 {
		t.Fatalf("login = %+v, %v, registrations %d, want one at the other server", l, err, len(other.regs))
	}
	files, _ := filepath.Glob(filepath.Join(f.Store.dir, "*"+secretSuffix))
	if len(files) != 1 {
		t.Errorf("stored: %v, want the tokens of the other server alone", files)
	}
}

// A server without metadata may issue tokens itself, as in 2025-03-26.
func TestFlowWithoutResourceMetadata(t *testing.T) {
	r := newRig(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"issuer": r.rs.URL, "authorization_endpoint": r.as.URL + "/authorize", "token_endpoint": r.as.URL + "/token",
			"registration_endpoint": r.as.URL + "/register", "code_challenge_methods_supported": []string{"S256"}})
	})
	r.rs.Config.Handler = mux
	r.redirect = func(_ *url.URL, q url.Values) { q.Del("iss") }
	l, err := r.flow().Run(testContext(t), Challenge{})
	if err != nil || l.Issuer != r.rs.URL || l.Resource != r.url() {
		t.Fatalf("login = %+v, %v, want one of the server's origin", l, err)
	}
}

// A person whose browser is on another machine can write where it was led to.
func TestFlowTakesPastedURL(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	lines := make(chan string, 2)
	f.Paste = lines
	f.Browse = func(to string) error {
		c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := c.Get(to)
		if err == nil {
			lines <- "not a URL of mine"
			lines <- resp.Header.Get("Location") + "\n"
			resp.Body.Close()
		}
		return err
	}
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
}

// What is asked for grows: scopes that were granted are not lost by another login.
//
// Spec: 2026-07-28, basic/authorization, Step-Up Authorization Flow.
func TestFlowKeepsScopes(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	c := r.challenge()
	c.Scope = "write"
	l, err := f.Run(testContext(t), c)
	if err != nil || !slices.Equal(l.Scopes, []string{"read", "write"}) {
		t.Fatalf("scopes = %v, %v, want read and write", l, err)
	}
}

func TestStoreIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	r := newRig(t)
	f := r.flow()
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(f.Store.dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files = %v, %v", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v, want 0600", file, info.Mode(), err)
		}
		if text, _ := os.ReadFile(file); strings.HasSuffix(file, entrySuffix) && strings.Contains(string(text), "access-") {
			t.Errorf("%s holds a token", file)
		}
	}
	secret, _ := filepath.Glob(filepath.Join(f.Store.dir, "*"+secretSuffix))
	if err := os.Chmod(secret[0], 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = f.Store.Load(r.url())
	wantError(t, err, "can be read or written by others")
	if err := f.Store.Delete(r.url()); err != nil {
		t.Fatal(err)
	}
	if _, err = f.Store.Load(r.url()); !errors.Is(err, ErrNoLogin) {
		t.Errorf("Load after Delete = %v, want ErrNoLogin", err)
	}
}
