package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// handler returns an admin address with a page, which is asked without a network.
func handler(t *testing.T, change func(*Options)) (*Handler, *shown) {
	t.Helper()
	g := new(shown)
	o := Options{
		Source: fixed{Servers: []Server{{Name: "inside", State: Up}}}, Gateway: g, Rooms: g, Feed: live.NewFeed(live.Options{Observe: func(trace.Observer, func(live.Change)) func() { return func() {} }}), Debug: true,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "counted") }),
		Reload:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { g.asked = append(g.asked, "reload") }),
	}
	if change != nil {
		change(&o)
	}
	h, err := NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	return h, g
}

// ask sends a request with headers to a handler.
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Where clients have to prove who they are, nobody gets past that by the admin address: it
// serves health and counters, and all else by the token that was made. Without it, before,
// everything was served.
func TestHardeningClientsProveWhoTheyAre(t *testing.T) {
	h, g := handler(t, nil)
	const call = `{"server":"inside","tool":"x"}`
	if w := ask(h, "POST", "/api/call", call); w.Code != 200 || len(g.asked) != 1 {
		t.Fatalf("a call where clients are anonymous = %d", w.Code)
	}
	h.Require(secret)
	g.asked = nil
	for i, path := range append(all, "POST /api/link") {
		method, path, _ := strings.Cut(path, " ")
		want := http.StatusUnauthorized
		if path == "/metrics" {
			want = http.StatusOK
		}
		for _, headers := range [][]string{nil, {"Authorization", "Bearer "}, {"Authorization", "Bearer another-token-0123"}} {
			if i >= wrongBurst && len(headers) > 0 && headers[1] != "Bearer " {
				want = http.StatusTooManyRequests // for so many wrong tokens
			}
			if w := ask(h, method, path, call, headers...); w.Code != want || strings.Contains(w.Body.String(), "inside") {
				t.Errorf("%s %s with %q = %d %s, want %d", method, path, headers, w.Code, w.Body, want)
			}
		}
	}
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`, "/metrics": "counted"} {
		if w := ask(h, "GET", path, ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s without a credential = %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	if w := ask(h, "GET", "/", ""); w.Code != 401 || !strings.Contains(w.Body.String(), "login.js") {
		t.Errorf("the page = %d, want the form", w.Code)
	}
	if len(g.asked) > 0 {
		t.Errorf("asked for %q", g.asked)
	}
	if w := ask(h, "POST", "/api/call", call, "Authorization", "Bearer "+secret); w.Code != 200 || len(g.asked) != 1 {
		t.Errorf("a call with the token = %d %s", w.Code, w.Body)
	}
}

// The token of the configuration stays the one that counts, and the one for counters.
func TestHardeningMadeTokenBesideOthers(t *testing.T) {
	h, _ := handler(t, func(o *Options) { o.Token = secret })
	h.Require("the-token-that-was-made")
	if w := ask(h, "GET", "/api/state", "", "Authorization", "Bearer the-token-that-was-made"); w.Code != 401 {
		t.Errorf("a made token beside an admin_token = %d, want 401", w.Code)
	}
	h, _ = handler(t, func(o *Options) { o.MetricsToken = "the-metrics-token-1" })
	h.Require(secret)
	for token, want := range map[string]int{"": 401, secret: 200, "the-metrics-token-1": 200} {
		if w := ask(h, "GET", "/metrics", "", "Authorization", "Bearer "+token); w.Code != want {
			t.Errorf("/metrics beside a metrics_token with %q = %d, want %d", token, w.Code, want)
		}
	}
	h, _ = handler(t, func(o *Options) { o.Exposed = true })
	h.Require(secret)
	if w := ask(h, "GET", "/api/state", "", "Authorization", "Bearer "+secret); w.Code != 403 {
		t.Errorf("beyond loopback without an admin_token = %d, want 403", w.Code)
	}
}

// A page that was open before clients had to prove who they are shows nothing more.
func TestHardeningOpenPageEnds(t *testing.T) {
	h, _ := handler(t, nil)
	s := httptest.NewServer(h)
	defer s.Close()
	d := websocket.Dialer{Subprotocols: []string{live.Subprotocol}}
	ws, res, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http")+"/api/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	defer ws.Close()
	h.Require(secret)
	for err == nil {
		_, _, err = ws.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the page's WebSocket ended with %v, want that it is closed", err)
	}
}

// link asks for a link, and returns its code.
func link(t *testing.T, h http.Handler) string {
	t.Helper()
	w := ask(h, "POST", "/api/link", "", "Authorization", "Bearer "+secret)
	var body struct{ Path string }
	err := json.Unmarshal(w.Body.Bytes(), &body)
	code, ok := strings.CutPrefix(body.Path, "/login#")
	if w.Code != 200 || err != nil || !ok || len(code) < 20 {
		t.Fatalf("a link = %d %s, want one with a code", w.Code, w.Body)
	}
	return code
}

// follow opens the page by a link.
func follow(h http.Handler, code string) *httptest.ResponseRecorder {
	return ask(h, "POST", "/login", `{"code":"`+code+`"}`)
}

// A link opens the page once, for a minute, and for nobody else.
func TestHardeningLinkIsGoodOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := handler(t, nil)
		h.Require(secret)
		code := link(t, h)
		time.Sleep(linkLife - time.Second)
		w := follow(h, code)
		var body struct{ Key string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 200 || len(w.Result().Cookies()) != 1 {
			t.Fatalf("a link = %d %s, want a session", w.Code, w.Body)
		}
		if again := follow(h, code); again.Code != 401 {
			t.Errorf("a link that was used a moment ago = %d, want 401", again.Code)
		}
		headers := []string{"Cookie", w.Result().Cookies()[0].String(), keyHeader, body.Key}
		if w := ask(h, "GET", "/api/state", "", headers...); w.Code != 200 {
			t.Errorf("the session of a link = %d, want 200", w.Code)
		}
		if w := ask(h, "POST", "/api/link", "", headers...); w.Code != 401 {
			t.Errorf("a link that a session asks for = %d, want 401", w.Code)
		}
		late := link(t, h)
		time.Sleep(linkLife)
		for name, code := range map[string]string{"used": code, "a minute old": late, "invented": "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
			if w := follow(h, code); w.Code != 401 || len(w.Result().Cookies()) > 0 || !strings.Contains(w.Body.String(), "mcpbridge admin") {
				t.Errorf("a link that is %s = %d %s, want 401 and what to do", name, w.Code, w.Body)
			}
		}
	})
}

// Links that nobody uses take no room.
func TestLinksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := handler(t, func(o *Options) { o.Token = secret })
		first := link(t, h)
		for range maxLinks {
			time.Sleep(time.Millisecond)
			link(t, h)
		}
		if n := len(h.guard.links.codes); n != maxLinks {
			t.Errorf("%d links are kept, want %d", n, maxLinks)
		}
		if w := follow(h, first); w.Code != 401 {
			t.Errorf("the oldest of %d links = %d, want that it made room", maxLinks+1, w.Code)
		}
	})
}

// Where no token is wanted, a link is the page itself.
func TestLinkWithoutToken(t *testing.T) {
	h, _ := handler(t, nil)
	if w := ask(h, "POST", "/api/link", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"path":"/"}` {
		t.Errorf("a link = %d %s", w.Code, w.Body)
	}
	h, _ = handler(t, func(o *Options) { o.Exposed = true })
	if w := ask(h, "POST", "/api/link", ""); w.Code != 403 {
		t.Errorf("a link beyond loopback = %d, want 403", w.Code)
	}
}
