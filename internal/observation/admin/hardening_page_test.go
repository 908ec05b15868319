package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

const secret = "the-admin-token-1"

// A shown is a gateway of one server.
type shown struct {
	asked []string // guarded by mu
	mu    sync.Mutex
	tried func() // called by Try; nil for nothing
}

func (s *shown) Status() *status.Snapshot {
	return &status.Snapshot{Servers: []status.Server{{Name: "inside"}, {Name: "all", Members: []string{"inside"}}}}
}

func (s *shown) Room(group string) *status.Room {
	if group != "all" {
		return nil
	}
	return &status.Room{Name: "all", Members: []status.RoomMember{{Name: "inside"}}}
}

func (s *shown) Ask(_ context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	s.asked = append(s.asked, server+" "+method+" "+string(params))
	return json.RawMessage(`{"content":[]}`), nil
}

func (s *shown) Try(w http.ResponseWriter, r *http.Request, server string) {
	s.mu.Lock()
	s.asked = append(s.asked, server+" "+r.Method)
	s.mu.Unlock()
	if s.tried != nil {
		s.tried()
	}
	_, _ = io.Copy(w, r.Body)
}

// start serves an admin address with a page over a socket.
func start(t *testing.T, change func(*Options)) (url string, g *shown) {
	t.Helper()
	g = new(shown)
	observers := trace.New()
	o := Options{
		Source: fixed{}, Token: secret, Gateway: g, Rooms: g, Debug: true,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "counted") }),
		Feed:    live.NewFeed(live.Options{Observe: func(o trace.Observer, _ func(live.Change)) func() { return observers.Add(o) }}),
		Reload:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { g.asked = append(g.asked, "reload") }),
	}
	if change != nil {
		change(&o)
	}
	h, err := NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, g
}

// do sends a request with headers, and returns the answer with its body read.
func do(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// login returns the cookie and the key of a new session.
func login(t *testing.T, url string) (cookie *http.Cookie, key string) {
	t.Helper()
	res, text := do(t, "POST", url+"/login", `{"token":"`+secret+`"}`, "Content-Type", "application/json", "Origin", url)
	var body struct{ Key string }
	if err := json.Unmarshal([]byte(text), &body); err != nil || res.StatusCode != 200 || len(res.Cookies()) != 1 {
		t.Fatalf("login: %s, %v, %s", res.Status, err, text)
	}
	return res.Cookies()[0], body.Key
}

// all are the paths that show or do something.
var all = []string{
	"GET /api/state", "GET /api/servers", "GET /api/clients", "GET /api/follows", "GET /api/questions", "GET /api/quirks", "GET /api/logins", "POST /api/logout", "GET /api/calls", "GET /api/calls/x", "GET /api/live", "GET /api/groups", "GET /api/groups/all",
	"GET /api/servers/inside", "GET /api/servers/inside/lines", "GET /api/servers/inside/changes", "GET /api/servers/inside/tools", "GET /api/servers/inside/prompts", "GET /api/rates", "POST /api/servers/inside/restart", "POST /api/servers/inside/accept", "POST /api/servers/inside/login", "POST /api/servers/inside/logout",
	"GET /api/tools?server=inside", "POST /api/call", "POST /api/mcp/inside", "DELETE /api/mcp/inside", "POST /reload", "GET /debug/pprof/", "GET /debug/pprof/heap", "GET /debug/pprof/profile?seconds=1", "GET /metrics",
	"GET /assets/app.js",
}

// Nothing is shown or done without the token: not at any path, and not with the token in
// the query, where logs and histories would have it.
func TestHardeningEverythingWantsTheToken(t *testing.T) {
	url, g := start(t, nil)
	for _, path := range all {
		method, path, _ := strings.Cut(path, " ")
		for _, query := range []string{"", "token=" + secret, "access_token=" + secret, "admin_token=" + secret} {
			to := url + path
			if query != "" {
				to += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + query
			}
			res, text := do(t, method, to, `{"server":"inside","tool":"x"}`, "Content-Type", "application/json")
			if res.StatusCode != http.StatusUnauthorized || strings.Contains(text, "inside") {
				t.Errorf("%s %s without the token = %s %q, want 401", method, to, res.Status, text)
			}
		}
	}
	if res, text := do(t, "GET", url+"/", ""); res.StatusCode != 401 || !strings.Contains(text, "login.js") {
		t.Errorf("the page without a session = %s, want the form that asks for the token", res.Status)
	}
	if len(g.asked) > 0 {
		t.Errorf("asked for %q", g.asked)
	}
}

// A page of another origin can't act with the session of who looks at it: browsers send
// neither the cookie (SameSite) nor the key, and requests that they mark as another's are
// refused whatever they have.
func TestHardeningCrossSitePost(t *testing.T) {
	url, g := start(t, nil)
	cookie, key := login(t, url)
	for _, from := range [][]string{
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", url + ".evil.example"}, {"Origin", url, "Origin", "https://evil.example"},
		{"Origin", "http://127.0.0.1:1"}, {"Origin", strings.Replace(url, "://", "://ada:pw@", 1)}, {"Origin", url + "/x"}, {"Origin", url + "?x"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
	} {
		for _, path := range []string{"/api/call", "/api/servers/inside/restart", "/api/servers/inside/accept", "/api/servers/inside/login", "/api/servers/inside/logout", "/reload", "/login", "/logout"} {
			headers := append([]string{"Content-Type", "application/json", "Cookie", cookie.String(), keyHeader, key}, from...)
			if res, _ := do(t, "POST", url+path, `{"server":"inside","tool":"x","token":"`+secret+`"}`, headers...); res.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s from %q = %s, want 403", path, from, res.Status)
			}
		}
	}
	// A form, which needs no permission of this origin, sends no JSON.
	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		for _, path := range []string{"/api/call", "/api/servers/inside/restart", "/api/servers/inside/accept", "/api/servers/inside/login", "/api/servers/inside/logout"} {
			if res, _ := do(t, "POST", url+path, `{"server":"inside","tool":"x","tools":[{"tool":"x"}]}`, "Content-Type", typ, "Cookie", cookie.String(), keyHeader, key); res.StatusCode != http.StatusUnsupportedMediaType {
				t.Errorf("%s as %q = %s, want 415", path, typ, res.Status)
			}
		}
	}
	if len(g.asked) > 0 {
		t.Errorf("asked for %q", g.asked)
	}
}

// Without a token, on loopback, pages of other origins get nothing either.
func TestHardeningCrossSiteWithoutToken(t *testing.T) {
	url, g := start(t, func(o *Options) { o.Token = "" })
	for _, path := range all {
		method, path, _ := strings.Cut(path, " ")
		if res, _ := do(t, method, url+path, `{"server":"inside","tool":"x"}`, "Content-Type", "application/json", "Origin", "http://127.0.0.1:1"); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s of another port's page = %s, want 403", method, path, res.Status)
		}
	}
	if len(g.asked) > 0 {
		t.Errorf("asked for %q", g.asked)
	}
}

// Browsers send the cookie to every port of the host. Whoever listens on one of them can
// do nothing with it: the key is in the storage of the page's own origin.
func TestHardeningCookieOfAnotherPort(t *testing.T) {
	url, g := start(t, nil)
	cookie, key := login(t, url)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge <= 0 || cookie.MaxAge > 86400 || cookie.Domain != "" {
		t.Errorf("the cookie is %v", cookie)
	}
	if _, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":"); !strings.HasSuffix(cookie.Name, port) {
		t.Errorf("the cookie is called %s, without the port: another mcpbridge would overwrite it", cookie.Name)
	}
	other, otherKey := login(t, url)
	for name, headers := range map[string][]string{
		"the cookie alone":              {"Cookie", cookie.String()},
		"the key alone":                 {keyHeader, key},
		"the key of another session":    {"Cookie", cookie.String(), keyHeader, otherKey},
		"the cookie of another session": {"Cookie", other.String(), keyHeader, key},
		"the cookie as the key":         {"Cookie", cookie.String(), keyHeader, cookie.Value},
		"an empty cookie":               {"Cookie", cookie.Name + "=", keyHeader, ""},
	} {
		if res, text := do(t, "GET", url+"/api/state", "", headers...); res.StatusCode != 401 || strings.Contains(text, "inside") {
			t.Errorf("%s: %s %s", name, res.Status, text)
		}
	}
	if res, text := do(t, "GET", url+"/api/state", "", "Cookie", cookie.String(), keyHeader, key); res.StatusCode != 200 || !strings.Contains(text, "inside") {
		t.Errorf("both = %s, want 200", res.Status)
	}
	do(t, "POST", url+"/logout", "{}", "Content-Type", "application/json", "Cookie", cookie.String())
	if res, _ := do(t, "GET", url+"/api/state", "", "Cookie", cookie.String(), keyHeader, key); res.StatusCode != 401 {
		t.Errorf("after the logout = %s, want 401", res.Status)
	}
	if len(g.asked) > 0 {
		t.Errorf("asked for %q", g.asked)
	}
}

// A WebSocket is opened by no page of another origin, and by none without both secrets.
func TestHardeningWebSocketOfAnotherOrigin(t *testing.T) {
	url, _ := start(t, nil)
	cookie, key := login(t, url)
	dial := func(headers http.Header, protocols ...string) int {
		d := websocket.Dialer{Subprotocols: protocols, HandshakeTimeout: bridgetest.Patience}
		ws, res, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(url, "http")+"/api/live", headers)
		if err == nil {
			ws.Close()
		}
		if res == nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	mine := http.Header{"Cookie": {cookie.String()}, "Origin": {url}}
	foreign := http.Header{"Cookie": {cookie.String()}, "Origin": {"http://evil.example"}}
	for name, tt := range map[string]struct {
		headers   http.Header
		protocols []string
		want      int
	}{
		"the page":               {mine, []string{live.Subprotocol, keyProtocol + key}, 101},
		"another origin":         {foreign, []string{live.Subprotocol, keyProtocol + key}, 403},
		"without the key":        {mine, []string{live.Subprotocol}, 401},
		"with another key":       {mine, []string{live.Subprotocol, keyProtocol + "AAAA"}, 401},
		"without the cookie":     {http.Header{"Origin": {url}}, []string{live.Subprotocol, keyProtocol + key}, 401},
		"a program with a token": {http.Header{"Authorization": {"Bearer " + secret}}, []string{live.Subprotocol}, 101},
	} {
		if got := dial(tt.headers, tt.protocols...); got != tt.want {
			t.Errorf("%s = %d, want %d", name, got, tt.want)
		}
	}
}

// The policy lets no script, style, frame or form of elsewhere in, nor any within a page.
func TestHardeningPolicy(t *testing.T) {
	url, _ := start(t, nil)
	for _, path := range []string{"/", "/login", "/assets/style.css", "/healthz", "/api/state", "/nowhere"} {
		res, _ := do(t, "GET", url+path, "")
		h := res.Header
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s has the policy %q, without %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s has %v", path, h)
		}
	}
}

// The token for counters opens counters alone.
func TestHardeningMetricsToken(t *testing.T) {
	const counters = "the-metrics-token-1"
	url, _ := start(t, func(o *Options) { o.MetricsToken = counters })
	for _, path := range all {
		method, path, _ := strings.Cut(path, " ")
		want := 401
		if path == "/metrics" {
			want = 200
		}
		if res, _ := do(t, method, url+path, "{}", "Content-Type", "application/json", "Authorization", "Bearer "+counters); res.StatusCode != want {
			t.Errorf("%s %s with metrics_token = %s, want %d", method, path, res.Status, want)
		}
	}
	url, _ = start(t, func(o *Options) { o.Token, o.MetricsToken = "", counters })
	if res, _ := do(t, "GET", url+"/metrics", ""); res.StatusCode != 401 {
		t.Errorf("/metrics without its token = %s, want 401", res.Status)
	}
}

// Beyond loopback, and without a token, there is nothing but health and counters.
func TestHardeningExposedWithoutToken(t *testing.T) {
	url, g := start(t, func(o *Options) { o.Token, o.Exposed = "", true })
	for _, path := range append(all, "GET /", "GET /login") {
		method, path, _ := strings.Cut(path, " ")
		if path == "/metrics" {
			continue
		}
		if res, text := do(t, method, url+path, "{}", "Content-Type", "application/json"); res.StatusCode < 400 || strings.Contains(text, "inside") {
			t.Errorf("%s %s = %s, want it refused", method, path, res.Status)
		}
	}
	if len(g.asked) > 0 {
		t.Errorf("asked for %q", g.asked)
	}
}

// A wrong token gets no session, however often, and sessions are bounded.
func TestHardeningLogin(t *testing.T) {
	url, _ := start(t, nil)
	for _, body := range []string{`{}`, `{"token":""}`, `{"token":"the-admin-token-"}`, `{"token":null}`, `[]`, strings.Repeat(`{"token":"`, 10_000)} {
		if res, _ := do(t, "POST", url+"/login", body, "Content-Type", "application/json"); res.StatusCode != 401 || len(res.Cookies()) > 0 {
			t.Errorf("login with %.40s = %s", body, res.Status)
		}
	}
	first, key := login(t, url)
	for range maxSessions {
		login(t, url)
	}
	if res, _ := do(t, "GET", url+"/api/state", "", "Cookie", first.String(), keyHeader, key); res.StatusCode != 401 {
		t.Errorf("the oldest of %d sessions = %s, want that it made room", maxSessions+1, res.Status)
	}
	// Without a token there is nothing to trade, not even an empty one.
	url, _ = start(t, func(o *Options) { o.Token = "" })
	if res, _ := do(t, "POST", url+"/login", `{"token":""}`, "Content-Type", "application/json"); res.StatusCode != 401 {
		t.Errorf("login without a token = %s, want 401", res.Status)
	}
}

// Profiles have no command line, which may have secrets, and no longer than is allowed.
func TestHardeningProfiles(t *testing.T) {
	url, _ := start(t, nil)
	for path, want := range map[string]int{"/debug/pprof/cmdline": 404, "/debug/pprof/profile?seconds=100000": 400, "/debug/pprof/heap": 200, "/debug/pprof/../../etc/passwd": 404} {
		if res, _ := do(t, "GET", url+path, "", "Authorization", "Bearer "+secret); res.StatusCode != want && (want != 404 || res.StatusCode < 300) {
			t.Errorf("%s = %s, want %d", path, res.Status, want)
		}
	}
}
