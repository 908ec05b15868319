package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// fleetOf are the servers of newFleet: of both eras, of which one fails, one is slow, one wants a login
// and one asks.
var fleetOf = []string{"legacy", "modern", "gone", "notes", "slow", "locked", "shelf", "broken"}

// newFleet is a world of eight servers, and a group.
func newFleet(t testing.TB) (*world, *lockedServer) {
	t.Helper()
	_, lines := startShelf(t)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := readCall(r)
		time.Sleep(1500 * time.Millisecond) // it is slow
		respond(w, c, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"},"tools":[],"content":[]}`)
	}))
	t.Cleanup(slow.Close)
	locked := startLocked(t)
	return newWorld(t, fmt.Sprintf(`  notes: {builtin: notebook, pin: warn}
  slow: {url: "%s/mcp", era: legacy}
  locked: {url: "%s/mcp", upstream_auth: {oauth: {shared_identity: true}}}
`, slow.URL, locked.URL), strings.TrimPrefix(lines, "\n"), "keyring: false\ngroups:\n  team: {servers: [legacy, modern, gone]}\n"), locked
}

// Every view, and the room of every server, fits a screen and a phone, in light and dark, with clients
// of both eras: no cut, nothing that axe-core finds serious, nothing on the console, and nothing that
// the page's policy has to refuse.
func TestEveryViewOfAFleet(t *testing.T) {
	w, _ := newFleet(t)
	answer := make(chan string)
	one := w.connect(t, "legacy", "2026-07-28", "modern-sdk", func() string { return <-answer })
	two := w.connect(t, "modern", "2025-11-25", "legacy-sdk", nil)
	if err := two.Subscribe(t.Context(), subscribeTo("res://item/001")); err != nil {
		t.Fatal(err)
	}
	three := w.connect(t, "legacy", "2025-11-25", "relayed-sdk", nil)
	call(t, three, "subscriptions", nil)
	w.send(t, "notes", "tools/list", "", "a-client-with-a-name-that-is-as-long-as-some-are/1.2.3-beta.4")
	w.send(t, "team", "tools/list", "", "of-the-group/1")
	asked := make(chan struct{})
	go func() { // ends with the call, whose question is answered below
		defer close(asked)
		call(t, one, "ask", map[string]any{"nonce": "n"})
	}()
	b := newBrowser(t)
	b.login(w)
	b.sees("slow", "locked", "broken", "down")
	b.view("questions")
	b.sees("elicitation/create")
	places := []string{"servers", "groups", "groups/team", "clients", "follows", "live", "questions", "quirks", "logins", "try"}
	for _, server := range fleetOf {
		places = append(places, "servers/"+server)
	}
	visit := func(t *testing.T, b *browser, place string) {
		b.t = t
		view, room, isRoom := strings.Cut(place, "/")
		eval[bool](b, fmt.Sprintf(`location.hash = %q; true`, place))
		b.do(chromedp.WaitVisible(fmt.Sprintf(`#views a[href="#%s"][aria-current]`, view)))
		if isRoom {
			b.sees(room, "Endpoint")
		}
	}
	// First as it is: the policy counts, and the console tells of what it refuses.
	for _, s := range screens {
		b.screen(s.wide, s.high, s.dark)
		for _, place := range places {
			visit(t, b, place)
			b.uncut(s.name + "/" + place)
		}
	}
	answer <- "n" // before the page is loaded anew
	<-asked
	b.bringAxe()
	for _, s := range screens {
		b.screen(s.wide, s.high, s.dark)
		for _, place := range places {
			visit(t, b, place)
			b.picture("fleet-" + strings.ReplaceAll(place, "/", "-") + "-" + s.name)
			b.judge()
		}
	}
}

// uncut finds what is cut off at the side of the screen, and can't be brought into it: the page is not
// wider than the screen, and nothing reaches over it but inside of what can be scrolled.
func (b *browser) uncut(where string) {
	b.t.Helper()
	if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		b.t.Errorf("%s: the page is %d pixels wider than the screen", where, wide)
	}
	cut := eval[[]string](b, `[...document.querySelectorAll('body *')].filter((n) => {
		const at = n.getBoundingClientRect();
		if (at.width === 0 || at.height === 0 || at.right <= innerWidth + 1 && at.left >= -1 || getComputedStyle(n).position === 'absolute' || n.closest('svg')) return false;
		for (let p = n.parentElement; p; p = p.parentElement) if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX) || getComputedStyle(p).clipPath !== 'none') return false;
		return true; // and is no heading that only a screen reader has
	}).slice(0, 3).map((n) => n.outerHTML.slice(0, 160))`)
	cut = append(cut, eval[[]string](b, `[...document.querySelectorAll('main *')].filter((n) => ['hidden', 'clip'].includes(getComputedStyle(n).overflowX) &&
		n.clientWidth > 1 && n.scrollWidth > n.clientWidth + 1).slice(0, 3).map((n) => n.outerHTML.slice(0, 160))`)...)
	if len(cut) > 0 {
		b.t.Errorf("%s: it is cut:\n%s", where, strings.Join(cut, "\n"))
	}
}

// A lockedServer is a server of 2026-07-28 that wants a login, and the authorization server that issues
// its tokens to whoever clicks on its page.
type lockedServer struct {
	*httptest.Server
	issued, revoked atomic.Int64
}

func startLocked(t testing.TB) *lockedServer {
	t.Helper()
	s, mux := new(lockedServer), http.NewServeMux()
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	serve := func(path, answer string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.ReplaceAll(answer, "HERE", s.URL))
		})
	}
	serve("/.well-known/oauth-protected-resource/mcp", `{"resource":"HERE/mcp","authorization_servers":["HERE"]}`)
	serve("/.well-known/oauth-authorization-server", `{"issuer":"HERE","authorization_endpoint":"HERE/authorize","token_endpoint":"HERE/token","registration_endpoint":"HERE/register",
		"revocation_endpoint":"HERE/revoke","code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["none"]}`)
	serve("/register", `{"client_id":"c1"}`)
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>id</title><link rel="icon" href="data:,"><a id="in" href="%s?%s">Let me in</a>`, q.Get("redirect_uri"), url.Values{"code": {"x"}, "state": {q.Get("state")}}.Encode())
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh","token_type":"Bearer","expires_in":3600}`, s.issued.Add(1))
	})
	mux.HandleFunc("/revoke", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("token") == "refresh" {
			s.revoked.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("/mcp", s.serve)
	return s
}

func (s *lockedServer) serve(w http.ResponseWriter, r *http.Request) {
	c := readCall(r)
	if s.issued.Load() == 0 || r.Header.Get("Authorization") != fmt.Sprintf("Bearer access-%d", s.issued.Load()) || s.revoked.Load() > 0 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	respond(w, c, `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"tools":[{"name":"x","inputSchema":{"type":"object"}}],"content":[{"type":"text","text":"let in"}],"ttlMs":0,"cacheScope":"private"}`)
}

// A person logs in to a server by its room, in a tab of its own, and out of it again.
func TestLoginAndLogoutInTheBrowser(t *testing.T) {
	w, locked := newFleet(t)
	b := newBrowser(t)
	b.login(w)
	b.opens(`main a[href="#servers/locked"]`, "#login")
	b.opens("#login", "#login-at")
	b.picture("server-login")
	if same := eval[bool](b, `(() => { const a = document.getElementById('login-at'); return a.target === '_blank' && a.rel.includes('noopener'); })()`); !same {
		t.Error("the login would take the place of the page")
	}
	at := eval[string](b, `document.getElementById('login-at').href`)
	other := newBrowser(t)
	other.provokes.Store(true) // the pages are not of the admin page
	other.do(chromedp.Navigate(at), chromedp.WaitVisible("#in"), chromedp.Click("#in"))
	other.sees("mcpbridge has the answer")
	rig.Until(t, patience, "the login", func() string {
		if len(w.audited(t, `"method":"login"`, `"server":"locked"`, `"principal":"admin"`)) != 1 {
			return "the audit log has no line of it"
		}
		return ""
	})
	b.sees("Server locked", "ready")
	cs := w.connect(t, "locked", "2025-11-25", "legacy-sdk", nil)
	if res := call(t, cs, "x", nil); res.IsError {
		t.Errorf("a call after the login = %+v", res)
	}
	b.do(chromedp.Click("#logout-of"))
	b.sees("The login is revoked, and deleted.")
	if n := locked.revoked.Load(); n != 1 {
		t.Errorf("%d tokens were revoked, want 1", n)
	}
	b.picture("server-logged-out")
}

// The room of a server shows what becomes of changed tools, and where that is set; another mode that
// the configuration gets is shown without a reload of the page.
func TestPinModesInTheRoom(t *testing.T) {
	w, _ := newFleet(t)
	b := newBrowser(t)
	b.login(w)
	for server, mode := range map[string]string{"shelf": "refuse", "notes": "warn", "modern": "off"} {
		eval[bool](b, fmt.Sprintf(`location.hash = "servers/%s"; true`, server))
		b.sees("Server "+server, "pin: "+mode, "below "+server+" in the configuration")
		if can := eval[bool](b, `document.getElementById('compare') !== null`); can != (mode != "off") {
			t.Errorf("pin: %s can compare: %v", mode, can)
		}
	}
	eval[bool](b, `location.hash = "servers/notes"; true`)
	b.sees("Server notes", "pin: warn", "are logged")
	w.rewrite(t, "pin: warn", "pin: refuse")
	b.sees("pin: refuse", "are hidden and refused")
	b.picture("server-pin")
}
