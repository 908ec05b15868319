package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// A rig is an authorization server and a server that wants its tokens, each with a socket
// of its own.
type rig struct {
	t      *testing.T
	as, rs *httptest.Server

	// Set before anything is sent.
	meta     map[string]any // of the authorization server; members here replace the usual ones
	prm      map[string]any // of the server
	redirect func(u *url.URL, q url.Values)
	onToken  func(w http.ResponseWriter, form url.Values) bool // answers by itself

	// mu guards the fields below.
	mu      sync.Mutex
	codes   map[string]url.Values // of authorization requests
	refresh string                // the refresh token that is valid
	granted []url.Values          // the forms of token requests
	regs    []map[string]any
	issued  int
	life    int // seconds
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, meta: map[string]any{}, prm: map[string]any{}, codes: map[string]url.Values{}, life: 3600}
	as := http.NewServeMux()
	as.HandleFunc("/.well-known/oauth-authorization-server", r.metadata)
	as.HandleFunc("/register", r.register)
	as.HandleFunc("/authorize", r.authorize)
	as.HandleFunc("/token", r.token)
	as.HandleFunc("/revoke", r.revoke)
	r.as = httptest.NewServer(as)
	t.Cleanup(r.as.Close)
	rs := http.NewServeMux()
	rs.HandleFunc("/.well-known/oauth-protected-resource/mcp", r.resource)
	rs.HandleFunc("/mcp", r.serve)
	r.rs = httptest.NewServer(rs)
	t.Cleanup(r.rs.Close)
	return r
}

func (r *rig) url() string { return r.rs.URL + "/mcp" }

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// merged returns the usual members with those of over, of which nil removes one.
func merged(usual, over map[string]any) map[string]any {
	for k, v := range over {
		if usual[k] = v; v == nil {
			delete(usual, k)
		}
	}
	return usual
}

func (r *rig) metadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, merged(map[string]any{
		"issuer": r.as.URL, "authorization_endpoint": r.as.URL + "/authorize", "token_endpoint": r.as.URL + "/token",
		"registration_endpoint": r.as.URL + "/register", "revocation_endpoint": r.as.URL + "/revoke",
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	}, r.meta))
}

func (r *rig) resource(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, merged(map[string]any{"resource": r.url(), "authorization_servers": []string{r.as.URL}, "scopes_supported": []string{"read"}}, r.prm))
}

func (r *rig) register(w http.ResponseWriter, req *http.Request) {
	var reg map[string]any
	_ = json.NewDecoder(req.Body).Decode(&reg) // tests look at it
	r.mu.Lock()
	defer r.mu.Unlock()
	r.regs = append(r.regs, reg)
	reg["client_id"] = fmt.Sprintf("client-%d", len(r.regs))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(reg) // the client may be gone
}

// authorize agrees at once, as if a person did.
func (r *rig) authorize(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	code := fmt.Sprintf("code-%d", len(r.codes)+1)
	r.mu.Lock()
	r.codes[code] = q
	r.mu.Unlock()
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		http.Error(w, "no redirect_uri", http.StatusBadRequest)
		return
	}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {r.as.URL}}
	if r.redirect != nil {
		r.redirect(to, answer)
	}
	to.RawQuery = answer.Encode()
	http.Redirect(w, req, to.String(), http.StatusFound)
}

func (r *rig) token(w http.ResponseWriter, req *http.Request) {
	_ = req.ParseForm() // an empty form is refused below
	form := req.PostForm
	r.mu.Lock()
	r.granted = append(r.granted, form)
	r.mu.Unlock()
	if r.onToken != nil && r.onToken(w, form) {
		return
	}
	switch form.Get("grant_type") {
	case grantCode:
		r.mu.Lock()
		asked := r.codes[form.Get("code")]
		delete(r.codes, form.Get("code"))
		r.mu.Unlock()
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != form.Get("redirect_uri") {
			refuse(w, "invalid_grant")
			return
		}
	case grantRefresh:
		r.mu.Lock()
		ok := form.Get("refresh_token") == r.refresh
		r.mu.Unlock()
		if !ok {
			refuse(w, "invalid_grant")
			return
		}
	}
	r.issue(w)
}

func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprintf(w, `{"error":%q,"error_description":"no"}`, code)
}

// issue issues a token, which makes those before invalid.
func (r *rig) issue(w http.ResponseWriter) {
	r.mu.Lock()
	r.issued++
	r.refresh = fmt.Sprintf("refresh-%d", r.issued)
	answer := map[string]any{"access_token": fmt.Sprintf("access-%d", r.issued), "token_type": "Bearer", "expires_in": r.life, "refresh_token": r.refresh, "issued_token_type": typeAccessToken}
	r.mu.Unlock()
	writeJSON(w, answer)
}

func (r *rig) revoke(w http.ResponseWriter, req *http.Request) {
	_ = req.ParseForm() // an empty form revokes nothing
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.PostForm.Get("token") == r.refresh {
		r.refresh = "none"
	}
}

// serve wants the token that was issued last.
func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Header.Get("Authorization") != fmt.Sprintf("Bearer access-%d", r.issued) || r.issued == 0 {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, r.rs.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, "{}")
}

// forms returns the forms of the token requests.
func (r *rig) forms() []url.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]url.Values(nil), r.granted...)
}

func (r *rig) store() *Store {
	return OpenStore(StoreOptions{Dir: r.t.TempDir(), NoKeyring: true})
}

func (r *rig) http() *fetch.Client { return fetch.New(fetch.Options{Near: []string{r.url()}}) }

// flow returns a Flow whose person agrees to all.
func (r *rig) flow() *Flow {
	return &Flow{URL: r.url(), HTTP: r.http(), Store: r.store(), Browse: r.browse, Wait: 10 * time.Second}
}

// browse follows redirects, as a browser does.
func (r *rig) browse(to string) error {
	resp, err := http.Get(to)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && bytes.Contains(text, []byte("code-")) {
		r.t.Errorf("the page repeats the code: %s", text)
	}
	return err
}

func (r *rig) challenge() Challenge {
	return Challenge{ResourceMetadata: r.rs.URL + "/.well-known/oauth-protected-resource/mcp"}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error = %v, want one with %q", err, part)
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
