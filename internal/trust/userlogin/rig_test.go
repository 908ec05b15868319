package userlogin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

const key = "a key of sixteen characters and more"

// An issuer is an authorization server, and the server whose tokens it issues. The browser's
// header X-User says who logs in.
type issuer struct {
	*httptest.Server

	mu      sync.Mutex
	asked   map[string]url.Values // authorization requests by code
	users   map[string]string     // by code, refresh token and access token
	life    int                   // of access tokens, in seconds
	clients map[string]bool       // that are registered
	denies  bool
	onCode  func() // is called when a code has been issued; may be nil
	onAsked func() // is called before a client is registered; may be nil
	onToken func() // is called before a token is issued; may be nil
	scope   string // of the challenge
	counts  map[string]int
	revoked []string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	is := &issuer{asked: make(map[string]url.Values), users: make(map[string]string), clients: make(map[string]bool), life: 3600, counts: make(map[string]int)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, _ *http.Request) {
		is.mu.Lock()
		defer is.mu.Unlock()
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/resource", scope=%q`, is.URL, is.scope))
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("GET /resource", func(w http.ResponseWriter, _ *http.Request) {
		is.answer(w, map[string]any{"resource": is.URL + "/mcp", "authorization_servers": []string{is.URL}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		is.answer(w, map[string]any{
			"issuer": is.URL, "authorization_endpoint": is.URL + "/authorize", "token_endpoint": is.URL + "/token", "registration_endpoint": is.URL + "/register",
			"revocation_endpoint": is.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var c map[string]any
		_ = json.NewDecoder(r.Body).Decode(&c)
		if is.onAsked != nil {
			is.onAsked()
		}
		is.mu.Lock()
		is.counts["register"]++
		id := "client-" + rand.Text()
		is.clients[id] = true
		is.mu.Unlock()
		c["client_id"] = id
		is.answer(w, c)
	})
	mux.HandleFunc("GET /authorize", is.authorize)
	mux.HandleFunc("POST /token", is.token)
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		is.mu.Lock()
		defer is.mu.Unlock()
		is.revoked = append(is.revoked, is.users[r.PostFormValue("token")])
		delete(is.users, r.PostFormValue("token"))
	})
	is.Server = httptest.NewServer(mux)
	t.Cleanup(is.Close)
	return is
}

func (is *issuer) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (is *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, _ := url.Parse(q.Get("redirect_uri"))
	a := url.Values{"state": {q.Get("state")}, "iss": {is.URL}}
	is.mu.Lock()
	defer is.mu.Unlock()
	if !is.clients[q.Get("client_id")] {
		http.Error(w, "this client is not known", http.StatusBadRequest)
		return
	}
	if is.denies {
		a.Set("error", "access_denied")
	} else {
		code := rand.Text()
		is.asked[code], is.users[code] = q, r.Header.Get("X-User")
		a.Set("code", code)
		if is.onCode != nil {
			is.onCode()
		}
	}
	back.RawQuery = a.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (is *issuer) token(w http.ResponseWriter, r *http.Request) {
	if is.onToken != nil {
		is.onToken()
	}
	is.mu.Lock()
	defer is.mu.Unlock()
	_ = r.ParseForm()
	if !is.clients[r.PostFormValue("client_id")] {
		is.refuse(w, "invalid_client")
		return
	}
	grant, had := r.PostFormValue("grant_type"), r.PostFormValue("code")
	if grant == "refresh_token" {
		had = r.PostFormValue("refresh_token")
	}
	user, ok := is.users[had]
	delete(is.users, had)
	if asked := is.asked[had]; ok && grant == "authorization_code" {
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		ok = asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && asked.Get("code_challenge_method") == "S256" &&
			asked.Get("redirect_uri") == r.PostFormValue("redirect_uri") && asked.Get("resource") == r.PostFormValue("resource")
	}
	if !ok {
		is.refuse(w, "invalid_grant")
		return
	}
	is.counts[grant]++
	access, refresh := "token-of-"+user+"-"+rand.Text(), rand.Text()
	is.users[access], is.users[refresh] = user, user
	is.answer(w, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": is.life})
}

func (is *issuer) refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	is.answer(w, map[string]any{"error": code})
}

// forget has the issuer know none of its clients any more.
func (is *issuer) forget() {
	is.mu.Lock()
	defer is.mu.Unlock()
	is.forgetLocked()
}

func (is *issuer) forgetLocked() { clear(is.clients) }

func (is *issuer) of(token string) (user string) {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.users[token]
}

func (is *issuer) count(of string) int {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.counts[of]
}

// A rig is a gateway, as far as this package sees one, with a server called docs.
type rig struct {
	*httptest.Server
	t      *testing.T
	logins *Logins
	docs   *Server
	at     *issuer // of the server
	id     *issuer // of the clients
	log    *strings.Builder

	mu    sync.Mutex
	noted []Event
}

// newRig returns one with logins in a place.
func newRig(t *testing.T, place Place) *rig {
	t.Helper()
	r := &rig{t: t, at: newIssuer(t), id: newIssuer(t), log: new(strings.Builder)}
	r.open(place)
	return r
}

func (r *rig) open(place Place) {
	var pages http.Handler
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { pages.ServeHTTP(w, q) }))
	r.t.Cleanup(r.Close)
	client := fetch.New(fetch.Options{Near: []string{r.at.URL, r.id.URL}})
	var err error
	r.logins, err = New(Options{Place: place, Keys: []string{key}, Public: r.URL, Fetch: func(string) *fetch.Client { return client },
		Logger: slog.New(slog.NewTextHandler(r.log, nil)), Secrets: redact.New(), Noted: r.note})
	if err != nil {
		r.t.Fatal(err)
	}
	r.docs = r.logins.Open(ServerOptions{Name: "docs", Flow: login.WebFlow{HTTP: client, URL: r.at.URL + "/mcp"}})
	r.t.Cleanup(r.docs.Close)
	pages = NewPages(r.logins, map[string]*Door{"docs": {
		Server: r.docs, Authenticate: r.authenticate, ByCertificate: func(*http.Request) bool { return false }, Tokens: true,
		Issuers: map[string]login.WebFlow{r.id.URL: {HTTP: client, Issuer: r.id.URL, Resource: "http://gateway/mcp/docs"}},
	}})
}

func (r *rig) note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = append(r.noted, e)
}

// A refusal is what an authenticator refuses with.
type refusal struct{}

func (refusal) Error() string   { return "refused" }
func (refusal) StatusCode() int { return http.StatusUnauthorized }

// authenticate knows the tokens of the clients' issuer, and static ones.
func (r *rig) authenticate(q *http.Request) (mcp.Principal, error) {
	token := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	if name, ok := strings.CutPrefix(token, "static-"); ok {
		return mcp.Principal(name), nil
	}
	if user := r.id.of(token); user != "" {
		return r.principal(user), nil
	}
	return "", refusal{}
}

func (r *rig) principal(user string) mcp.Principal { return mcp.Principal(r.id.URL + " " + user) }

// A browser is that of a user, who is logged in everywhere.
type browser struct {
	t    *testing.T
	user string
	http *http.Client
}

func newBrowser(t *testing.T, user string) *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{t, user, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// A page is what a browser shows at the end.
type page struct {
	status int
	text   string
	at     *url.URL
	way    []string // that led there
	header http.Header
}

// open opens a URL, and follows where it leads.
func (b *browser) open(to string) *page {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodGet, to, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(req)
}

func (b *browser) send(req *http.Request) *page {
	b.t.Helper()
	var way []string
	for range 10 {
		req.Header.Set("X-User", b.user)
		way = append(way, req.URL.String())
		res, err := b.http.Do(req)
		if err != nil {
			b.t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		next, err := res.Location()
		if err != nil {
			return &page{res.StatusCode, html.UnescapeString(string(text)), req.URL, way, res.Header}
		}
		if req, err = http.NewRequest(http.MethodGet, next.String(), nil); err != nil {
			b.t.Fatal(err)
		}
	}
	b.t.Fatalf("the way does not end: %q", way)
	return nil
}

var wordOf = regexp.MustCompile(`name="word" value="([^"]+)"`)

// form returns the request of a form of a page, as browsers send it.
func (p *page) form(way string, more ...string) *http.Request {
	values := url.Values{"way": {way}}
	if word := wordOf.FindStringSubmatch(p.text); word != nil {
		values.Set("word", word[1])
	}
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	req, _ := http.NewRequest(http.MethodPost, p.at.String(), strings.NewReader(values.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", p.at.Scheme+"://"+p.at.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return req
}

// logIn takes a browser from a link to its end.
func (b *browser) logIn(link, way string, more ...string) *page {
	b.t.Helper()
	return b.send(b.open(link).form(way, more...))
}

// wantStatus fails the test unless a page has a status.
func (p *page) wantStatus(t *testing.T, what string, status int) {
	t.Helper()
	if p.status != status {
		t.Errorf("%s: %d %s at %q, want %d", what, p.status, p.text, p.way, status)
	}
}

// events are what was noted, without addresses.
func (r *rig) events() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.noted {
		out = append(out, fmt.Sprintf("%s %s by %s", e.What, e.Principal, e.By))
	}
	return slices.Clone(out)
}

// wait is how long tests wait for what is to happen soon.
const wait = time.Minute
