package router

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/trust/userlogin"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// userLogins are logins of principals at a server, without an authorization server.
type userLogins struct {
	*userlogin.Server
	all *userlogin.Logins
}

// newUserLogins returns logins of these principals, whose tokens name them.
func newUserLogins(t *testing.T, of ...string) *userLogins {
	t.Helper()
	all, err := userlogin.New(userlogin.Options{
		Place: userlogin.InDir(t.TempDir()), Keys: []string{"a key of sixteen characters and more"}, Public: "https://mcp.example.com",
		Logger: slog.New(slog.DiscardHandler), Fetch: func(string) *fetch.Client { return fetch.New(fetch.Options{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	u := &userLogins{all.Open(userlogin.ServerOptions{Name: "peer", Flow: login.WebFlow{URL: "https://peer.example.com"}}), all}
	t.Cleanup(u.Close)
	for _, who := range of {
		u.logIn(t, who)
	}
	return u
}

func (u *userLogins) logIn(t *testing.T, who string) {
	t.Helper()
	err := u.Keep(t.Context(), mcp.Principal(who), &login.Login{Server: "https://peer.example.com", Issuer: "https://id.example.com", Token: login.Token{AccessToken: "login-of-" + who}})
	if err != nil {
		t.Fatal(err)
	}
}

// A lockedWorld is a world whose servers want the login of a user with each request.
type lockedWorld struct {
	*world
	users *userLogins

	mu    sync.Mutex
	asked map[string][]string        // methods by the user of the token
	open  map[string]map[string]bool // users by upstream session
}

func newLockedWorld(w *world, logins ...string) *lockedWorld {
	l := &lockedWorld{users: newUserLogins(w.t, logins...), asked: make(map[string][]string), open: make(map[string]map[string]bool)}
	l.world = newWorldOf(w.t, w.era, settings.IsolatePrincipal, l.users, func(o *Options) { o.Servers[0].UserLogins = l.users })
	at := l.modernOrLegacy()
	inner := at.Handler
	at.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer login-of-")
		if !ok {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		l.note(user, r)
		inner.ServeHTTP(rw, r)
	})
	return l
}

// unsettled returns a client of a principal without a login: nothing is opened upstream.
func (l *lockedWorld) unsettled(who string, era spec.Era) *tenant {
	l.t.Helper()
	c := &tenant{w: l.world, t: l.t, who: who, era: era, path: "/mcp/peer"}
	if era == spec.Legacy {
		got := c.post(hello)
		if c.session = got.header.Get("Mcp-Session-Id"); c.session == "" {
			l.t.Fatalf("initialize without a login = %d %s, want a session", got.status, got.body)
		}
		c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

func (w *world) modernOrLegacy() *http.Server {
	if w.modern != nil {
		return w.modern.Config
	}
	return w.legacy.Config
}

// note keeps what a request asks for, on whose behalf.
func (l *lockedWorld) note(user string, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	m, _ := wire.Parse(body, wire.Options{}) // GET and DELETE have none
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[user] = append(l.asked[user], m.Method)
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		if l.open[id] == nil {
			l.open[id] = make(map[string]bool)
		}
		l.open[id][user] = true
	}
}

func (l *lockedWorld) count(user, method string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.asked[user] {
		if m == method {
			n++
		}
	}
	return n
}

// legOwnLogin has each principal use the server with a login of its own: no session, no stream and
// no result is of two, and who has none gets nothing that another's login has opened.
func legOwnLogin(w *world, front spec.Era) {
	l := newLockedWorld(w, alice)
	a, b := l.client(alice, front), l.unsettled(bob, front)
	for range 2 {
		if got := a.ask("tools/list", "", ""); got.code() != 0 {
			w.t.Fatalf("alice's list = %d %s", got.status, got.body)
		}
	}
	a.tool("whoami", "")
	followed := a.follow("note://private")
	for _, ask := range []func() answer{
		func() answer { return b.ask("tools/list", "", "") },
		func() answer { return b.tool("whoami", "") },
		func() answer { return b.ask("resources/read", "note://todo", `"uri":"note://todo"`) },
	} {
		if got := ask(); got.code() != spec.CodeInternal || !strings.Contains(got.body, "https://mcp.example.com/login/") {
			w.t.Errorf("without a login bob gets %d %s, want a link", got.status, got.body)
		}
	}
	if len(l.asked[bob]) != 0 {
		w.t.Errorf("the server was asked for bob: %q", l.asked[bob])
	}
	l.users.logIn(w.t, bob)
	for range 2 {
		if got := b.ask("tools/list", "", ""); got.code() != 0 {
			w.t.Errorf("bob's list = %d %s", got.status, got.body)
		}
	}
	b.tool("whoami", "")
	b.follow("note://bobs")
	a.change("note://private")
	followed.want("note://private")
	for _, who := range []string{alice, bob} {
		if l.count(who, "tools/list") == 0 {
			w.t.Errorf("the server was not asked for the list with the login of %s, want it of each", who)
		}
	}
	l.mu.Lock()
	for id, users := range l.open {
		if len(users) != 1 {
			w.t.Errorf("session %s of the server was used with logins of %v", id, users)
		}
	}
	l.mu.Unlock()
	ended, err := l.users.all.End(w.t.Context(), "peer", alice)
	l.users.Forget(alice)
	if err != nil || len(ended) != 1 {
		w.t.Fatalf("End = %v, %v", ended, err)
	}
	if got, other := a.tool("whoami", ""), b.tool("whoami", ""); got.code() != spec.CodeInternal || other.code() != 0 {
		w.t.Errorf("after alice's logout she gets %s, and bob %s", got.body, other.body)
	}
}

// A client is told of the page as its era has it, and as far as it declares that it takes URLs.
func TestUserLoginIsTold(t *testing.T) {
	t.Parallel()
	const takes, forms = `{"elicitation":{"url":{}}}`, `{"elicitation":{}}`
	for _, back := range []spec.Era{spec.Legacy, spec.Modern} {
		l := newLockedWorld(newWorld(t, back, settings.IsolatePrincipal))
		ask := func(era spec.Era, capabilities, method, rest string) answer {
			c := &tenant{w: l.world, t: t, who: alice, era: era, path: "/mcp/peer"}
			if era == spec.Modern {
				return l.sendTo(t, http.MethodPost, c.path, askableBody("1", method, capabilities, rest), "", c.headers(method, "whoami"))
			}
			hello := l.sendTo(t, http.MethodPost, c.path, strings.Replace(hello, `"capabilities":{}`, `"capabilities":`+capabilities, 1), "", c.headers("", ""))
			if c.session = hello.header.Get("Mcp-Session-Id"); c.session == "" {
				t.Fatalf("initialize without a login = %d %s, want a session", hello.status, hello.body)
			}
			c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			return c.ask(method, "", rest)
		}
		const call = `"name":"whoami","arguments":{}`
		for _, tt := range []struct {
			era                        spec.Era
			capabilities, method, rest string
			code                       int64
			has                        string
		}{
			{spec.Legacy, takes, "tools/call", call, spec.CodeURLElicitation, `"elicitationId":`},
			{spec.Legacy, takes, "tools/list", "", spec.CodeURLElicitation, `"mode":"url"`},
			{spec.Legacy, forms, "tools/call", call, spec.CodeInternal, "open https://mcp.example.com/login/"},
			{spec.Legacy, `{}`, "tools/list", "", spec.CodeInternal, "open https://mcp.example.com/login/"},
			{spec.Modern, takes, "tools/call", call, 0, `"resultType":"input_required"`},
			{spec.Modern, takes, "tools/list", "", spec.CodeInternal, "open https://mcp.example.com/login/"},
			{spec.Modern, forms, "tools/call", call, spec.CodeInternal, `"url":"https://mcp.example.com/login/`},
			{spec.Modern, `{}`, "tools/call", call, spec.CodeInternal, "open https://mcp.example.com/login/"},
		} {
			got := ask(tt.era, tt.capabilities, tt.method, tt.rest)
			if got.code() != tt.code || !strings.Contains(got.body, tt.has) || !strings.Contains(got.body, "https://mcp.example.com/login/") {
				t.Errorf("%v server, %v client with %s: %s = %d %s, want %d with %s", back, tt.era, tt.capabilities, tt.method, got.status, got.body, tt.code, tt.has)
			}
		}
		if strings.Contains(l.logs.String(), "mcp.example.com/login/") {
			t.Error("the log has a link")
		}
		asked := ask(spec.Modern, takes, "tools/call", call)
		l.users.logIn(t, alice)
		retry := ask(spec.Modern, takes, "tools/call", call+`,"inputResponses":{"dev.mcpbridge/login":{"action":"accept"}}`)
		if retry.code() != 0 || strings.Contains(retry.body, "input_required") || json.Valid([]byte(asked.body)) == false {
			t.Errorf("%v server: the retry after the login = %d %s", back, retry.status, retry.body)
		}
		declined := ask(spec.Modern, takes, "tools/call", call+`,"inputResponses":{"dev.mcpbridge/login":{"action":"decline"}}`)
		if declined.code() != spec.CodeInternal {
			t.Errorf("%v server: declined = %s", back, declined.body)
		}
		l.mu.Lock()
		got := slices.Sorted(maps.Keys(l.asked))
		l.mu.Unlock()
		if fmt.Sprint(got) != "[alice]" {
			t.Errorf("%v server: it was asked with logins of %v", back, got)
		}
	}
}

// A legacy client that was told of a page hears when the login is there, by the id that it was
// given, and another user's does not.
func TestUserLoginIsComplete(t *testing.T) {
	t.Parallel()
	for _, back := range []spec.Era{spec.Legacy, spec.Modern} {
		l := newLockedWorld(newWorld(t, back, settings.IsolatePrincipal))
		ids, heard := make(map[string]string), make(map[string]*lines)
		for _, who := range []string{alice, bob} {
			c := &tenant{w: l.world, t: t, who: who, era: spec.Legacy, path: "/mcp/peer"}
			c.session = c.post(strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"elicitation":{"url":{}}}`, 1)).header.Get("Mcp-Session-Id")
			c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			heard[who] = newLines(t, l.openAt(t, http.MethodGet, c.path, "", c.headers("", "")))
			got := c.tool("whoami", "")
			_, id, _ := strings.Cut(got.body, `"elicitationId":"`)
			ids[who], _, _ = strings.Cut(id, `"`)
			if got.code() != spec.CodeURLElicitation || ids[who] == "" {
				t.Fatalf("%v server: %s is told %s", back, who, got.body)
			}
		}
		l.users.logIn(t, bob)
		heard[bob].want(`{"elicitationId":"` + ids[bob] + `"}`)
		l.users.logIn(t, alice)
		heard[alice].want(`{"elicitationId":"` + ids[alice] + `"}`)
		if said := strings.Join(heard[alice].seen, " "); strings.Contains(said, ids[bob]) || !strings.Contains(said, spec.NotifyElicitationComplete) {
			t.Errorf("%v server: alice hears %s, want of %s alone", back, said, ids[alice])
		}
	}
}
