package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Every option of a group arrives.
func TestGroupOptionsArrive(t *testing.T) {
	o := Options{PublicURL: "https://mcp.example.com", Servers: []ServerOptions{{Name: "a.b", Handler: &shelf{}, Auth: &Auth{Tokens: []StaticToken{{Name: "bob", Token: "u"}}}}}}
	g := GroupOptions{
		Name: "all", Members: []string{"a.b"}, OwnNames: true, Prefer: map[string]string{"read": "a.b"}, MaxName: 100, Patience: time.Second, StartPatience: time.Minute,
		RequireAll: true, Unattributed: true, Instructions: "be kind", Auth: &Auth{Tokens: []StaticToken{{Name: "bob", Token: "u"}}},
		Policy: &Policy{Default: DefaultDeny}, Rates: Rates{Server: Rate{Concurrent: 1}}, PublicURL: "https://all.example.com/mcp",
	}
	o.Groups = []GroupOptions{g}
	b := newBuild(&o, mcp.NoMetrics{})
	if err := errors.Join(b.addAll(), b.addCommon(), b.addGroups(nil), b.addAccess()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.close() }()
	if got := unset(g); got != nil {
		t.Fatalf("the test sets no %v", got)
	}
	all := b.options(nil).Servers
	entry := all[len(all)-1]
	if got := unset(entry); !slices.Equal(got, []string{"Open", "OpenPeer", "Command", "HoldFor", "Definition", "Saw", "Visit", "UserLogins", "OnlyFor", "Kept"}) {
		t.Errorf("what the gateway is not told of a group: %v", got)
	}
	if got := unset(*entry.Group); !slices.Equal(got, []string{"Name", "Find", "Sealer", "Logger", "Metrics"}) { // which are the gateway's own
		t.Errorf("what is not set of a group: %v", got)
	}
	if got := unset(entry.Access); !slices.Equal(got, []string{"Server", "Pins", "Audit", "Names", "Metrics"}) {
		t.Errorf("options of the access to a group that are not set: %v", got)
	}
	if of := b.of(&o.Servers[0]); !of.serverOptions(&serverParts{}).InGroup {
		t.Error("a member is not told that it is one")
	}
	if m := entry.Group.Members[0]; m.Name != "a.b" || m.Prefix != "a-b" {
		t.Errorf("the member is %+v", m)
	}
	o.Servers[0].Prefix = "x"
	if m := b.ofGroup(&g).members().Members[0]; m.Prefix != "x" {
		t.Errorf("with a prefix of its own the member is %+v", m)
	}
}

// A group whose members have other clients, or would be sent what is not for them, is refused, and
// so is one that contradicts itself.
func TestG17GroupsAreNoWayAround(t *testing.T) {
	at := func(name string, change func(*ServerOptions)) ServerOptions {
		s := ServerOptions{Name: name, URL: "https://" + name + ".example.com", Era: Modern}
		if change != nil {
			change(&s)
		}
		return s
	}
	tokens := &Auth{Tokens: []StaticToken{{Name: "ada", Token: "t"}}}
	exchange := &UpstreamAuth{TokenExchange: &IssuerClient{Issuer: "https://id.example.com", ClientID: "c", ClientSecret: "s"}}
	jwt := &Auth{JWT: &JWT{Issuer: "https://id.example.com"}}
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"as the server":        {Options{Servers: []ServerOptions{at("a", func(s *ServerOptions) { s.Auth = &Auth{} }), at("b", nil)}}, ""},
		"as all":               {Options{Auth: tokens, Servers: []ServerOptions{at("a", nil), at("b", func(s *ServerOptions) { s.Auth = tokens })}}, ""},
		"of its own":           {Options{Servers: []ServerOptions{at("a", func(s *ServerOptions) { s.Auth = tokens }), at("b", nil)}}, `server "a" has another Auth`},
		"anonymous":            {Options{Auth: tokens, Servers: []ServerOptions{at("a", nil), at("b", func(s *ServerOptions) { s.Auth = &Auth{} })}}, `server "b" has another Auth`},
		"the caller's token":   {Options{Servers: []ServerOptions{at("a", nil), at("b", func(s *ServerOptions) { s.UpstreamAuth = &UpstreamAuth{Passthrough: true} })}}, "without Passthrough"},
		"an exchange":          {Options{Auth: tokens, Servers: []ServerOptions{at("a", nil), at("b", func(s *ServerOptions) { s.UpstreamAuth = exchange })}}, "want Auth with a JWT"},
		"an exchange of a JWT": {Options{Auth: jwt, PublicURL: "https://mcp.example.com", Servers: []ServerOptions{at("a", nil), at("b", func(s *ServerOptions) { s.UpstreamAuth = exchange })}}, ""},
	} {
		tt.o.Groups = []GroupOptions{{Name: "all", Members: []string{"a", "b"}}}
		wantNew(t, name, tt.o, tt.want)
	}
	servers := []ServerOptions{at("a", nil), at("b", nil), at("a.b", nil), at("a-b", nil)}
	for want, g := range map[string][]GroupOptions{
		"want Members":               {{Name: "all"}},
		"a server has that name":     {{Name: "a", Members: []string{"b"}}},
		`there is no server "c"`:     {{Name: "all", Members: []string{"a", "c"}}},
		"groups have servers alone":  {{Name: "all", Members: []string{"a"}}, {Name: "some", Members: []string{"all"}}},
		"is there twice":             {{Name: "all", Members: []string{"a", "b", "a"}}},
		`two servers are called "x"`: {{Name: "x", Members: []string{"a"}}, {Name: "x", Members: []string{"b"}}},
		"which is none":              {{Name: "all", Members: []string{"a"}, OwnNames: true, Prefer: map[string]string{"read": "b"}}},
		"both have the prefix":       {{Name: "all", Members: []string{"a.b", "a-b"}}},
		"no room for the prefix":     {{Name: "all", Members: []string{"a"}, MaxName: 19}},
		"a name is letters":          {{Name: "all of them", Members: []string{"a"}}},
	} {
		wantNew(t, want, Options{Servers: servers, Groups: g}, want)
	}
}

// wantNew wants New to fail with a text; empty for not.
func wantNew(t *testing.T, what string, o Options, want string) {
	t.Helper()
	g, err := New(o)
	if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: New = %v, want %q", what, err, want)
	}
	if err == nil {
		_ = g.Shutdown(t.Context())
	}
}

// Groups are served beside their members, and go on while members are replaced, come and go; the
// endpoint of one that has another policy is another one.
func TestG18GroupsGoOn(t *testing.T) {
	a, b, c := &shelf{text: "of a"}, &shelf{text: "of b"}, &shelf{text: "of c"}
	at := func(name string, s *shelf) ServerOptions { return ServerOptions{Name: name, Handler: s, Era: Legacy} }
	all := func(members ...string) []GroupOptions { return []GroupOptions{{Name: "all", Members: members}} }
	r := run(t, Options{Servers: []ServerOptions{at("a", a), at("b", b)}, Groups: all("a", "b")})
	wantTool := func(tool, want string) {
		t.Helper()
		if status, body := r.callTool("all", tool, ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("call of %s = %d %s, want %s", tool, status, body, want)
		}
	}
	wantTool("a__read", "of a")
	wantTool("b__read", "of b")
	session := r.initialize("all")
	for _, step := range []struct {
		what    string
		o       Options
		want    *Reloaded
		tool    string
		says    string
		goes    bool // the session
		without string
	}{
		{"nothing", Options{Servers: []ServerOptions{at("a", a), at("b", b)}, Groups: all("a", "b")}, &Reloaded{}, "a__read", "of a", true, ""},
		{"a member is replaced", Options{Servers: []ServerOptions{at("a", a), at("b", c)}, Groups: all("a", "b")}, &Reloaded{Changed: []string{"b"}}, "b__read", "of c", true, ""},
		{"a member comes", Options{Servers: []ServerOptions{at("a", a), at("b", c), at("c", c)}, Groups: all("a", "b", "c")}, &Reloaded{Added: []string{"c"}, Changed: []string{"all"}}, "c__read", "of c", true, ""},
		{"a member goes", Options{Servers: []ServerOptions{at("a", a), at("c", c)}, Groups: all("a", "c")}, &Reloaded{Changed: []string{"all"}, Removed: []string{"b"}}, "a__read", "of a", true, "b__read"},
		{"another policy", Options{Servers: []ServerOptions{at("a", a), at("c", c)}, Groups: []GroupOptions{{Name: "all", Members: []string{"a", "c"}, Policy: &Policy{Default: DefaultAllow}}}}, &Reloaded{Changed: []string{"all"}}, "a__read", "of a", false, ""},
		{"it goes itself", Options{Servers: []ServerOptions{at("a", a), at("c", c)}}, &Reloaded{Removed: []string{"all"}}, "", "", false, ""},
	} {
		if got := r.reload(step.o); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: Reload = %+v, want %+v", step.what, got, step.want)
		}
		if step.tool != "" {
			wantTool(step.tool, step.says)
		}
		if step.without != "" {
			wantTool(step.without, "Unknown tool")
		}
		if lives := r.ping("all", session) == http.StatusOK; lives != step.goes {
			t.Errorf("%s: the session lives: %v", step.what, lives)
		}
	}
	if status, _ := r.callTool("all", "a__read", ""); status != http.StatusNotFound {
		t.Errorf("a group that was removed answers %d", status)
	}
}

// Tokens of a group's clients are replaced with those of its members.
func TestG18TokensOfGroups(t *testing.T) {
	as := func(token string) Options {
		auth := &Auth{Tokens: []StaticToken{{Name: "ada", Token: token}}}
		return Options{Servers: []ServerOptions{{Name: "a", Handler: &shelf{text: "of a"}, Era: Legacy, Auth: auth}}, Groups: []GroupOptions{{Name: "all", Members: []string{"a"}, Auth: auth}}}
	}
	first, second := as("first"), as("second")
	second.Servers[0].Handler = first.Servers[0].Handler
	r := run(t, first)
	if status, _ := r.callTool("all", "a__read", "Bearer first"); status != 200 {
		t.Errorf("with the token the status is %d", status)
	}
	if got, want := r.reload(second), (&Reloaded{Renewed: []string{"a", "all"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("Reload = %+v, want %+v", got, want)
	}
	for token, want := range map[string]int{"first": 401, "second": 200} {
		if status, body := r.callTool("all", "a__read", "Bearer "+token); status != want {
			t.Errorf("with the %s token: %d %s", token, status, body)
		}
	}
}

// Lists of members are remembered, of URLs, too, by what defines a server and what clients see of
// it, as it is since the last reload.
func TestG08ListsAreRememberedByWhatIsShown(t *testing.T) {
	at := func(deny ...string) Options {
		return Options{
			StateDir: t.TempDir(), Groups: []GroupOptions{{Name: "all", Members: []string{"a", "b"}}},
			Servers: []ServerOptions{{Name: "a", URL: "http://127.0.0.1:1/", Remember: true, Tools: Shown{Deny: deny}}, {Name: "b", URL: "http://127.0.0.1:2/"}},
		}
	}
	first := at()
	g, err := New(first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Shutdown(t.Context()) }()
	was := g.lists.of("a")
	if was == "" || g.lists.of("b") != "" || g.lists.of("none") != "" {
		t.Errorf("definitions %q, %q, want one of a alone", was, g.lists.of("b"))
	}
	second := at("x")
	second.StateDir = first.StateDir
	if _, err := g.Reload(second); err != nil {
		t.Fatal(err)
	}
	if is := g.lists.of("a"); is == "" || is == was {
		t.Errorf("what is hidden since a reload is remembered by %q, before it was %q", is, was)
	}
	second.Servers[0].Policy = &Policy{Default: DefaultDeny}
	before := g.lists.of("a")
	if _, err := g.Reload(second); err != nil || g.lists.of("a") == before {
		t.Errorf("with a policy the definition is %q, %v", g.lists.of("a"), err)
	}
}

// initialize opens a session of a legacy client.
func (r *running) initialize(server string) (session string) {
	r.t.Helper()
	res := r.post(server, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if session = res.Header().Get("Mcp-Session-Id"); session == "" {
		r.t.Fatalf("initialize = %d %s", res.Code, res.Body)
	}
	return session
}

// ping returns the status of a ping in a session.
func (r *running) ping(server, session string) int {
	return r.post(server, session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`).Code
}

func (r *running) post(server, session, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp/"+server, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	r.g.ServeHTTP(w, req)
	return w
}
