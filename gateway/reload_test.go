package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A shelf is a server of revision 2025-11-25 with one tool, which says its text.
type shelf struct {
	text string
	hold chan struct{} // calls wait until it is closed; nil for not

	mu            sync.Mutex
	opened, ended int      // sessions
	calls         int      // that have begun
	authorization []string // of calls
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := string(body)
	id := "null"
	if _, rest, ok := strings.Cut(text, `"id":`); ok {
		id = strings.TrimRight(strings.SplitN(rest, ",", 2)[0], "}")
	}
	w.Header().Set("Content-Type", "application/json")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodDelete:
		s.ended++
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.Contains(text, `"initialize"`):
		s.opened++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", s.opened))
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}}`, id)
	case strings.Contains(text, `"tools/call"`):
		s.calls++
		s.authorization = append(s.authorization, r.Header.Get("Authorization"))
		if s.hold != nil {
			s.mu.Unlock()
			<-s.hold
			s.mu.Lock()
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, s.text)
	case id == "null":
		w.WriteHeader(http.StatusAccepted)
	default:
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, id)
	}
}

// counts returns how many sessions were opened and ended, and calls begun. The gateway opens
// one, and ends it, to see whether the server is there.
func (s *shelf) counts() (opened, ended, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.ended, s.calls
}

// settle waits until one session is open, after that of the gateway has ended.
func (s *shelf) settle(t *testing.T) {
	t.Helper()
	until(t, "one session is open", func() bool {
		opened, ended, _ := s.counts()
		return opened >= 2 && opened == ended+1
	})
}

// A running is a gateway that clients reach.
type running struct {
	t     *testing.T
	g     *Gateway
	front *httptest.Server
}

func run(t *testing.T, o Options) *running {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	g.Start()
	r := &running{t, g, httptest.NewServer(g)}
	t.Cleanup(r.end)
	return r
}

func (r *running) end() {
	r.g.EndStreams()
	r.front.Close()
	ctx, cancel := context.WithTimeout(context.Background(), bridgetest.Patience)
	defer cancel()
	if err := r.g.Shutdown(ctx); err != nil {
		r.t.Error("Shutdown:", err)
	}
}

// call calls the tool of a server as a modern client, and returns the status and the body.
func (r *running) call(server, token string) (int, string) { return r.callTool(server, "read", token) }

func (r *running) callTool(server, tool, token string) (int, string) {
	return r.callAs(server, tool, "{}", token)
}

// callAs calls a tool as a client with capabilities.
func (r *running) callAs(server, tool, capabilities, token string) (int, string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `,` +
		`"io.modelcontextprotocol/clientInfo":{"name":"example","version":"1"}}}}`
	req, _ := http.NewRequest(http.MethodPost, r.front.URL+"/mcp/"+server, strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

func (r *running) wantCall(server, want string) {
	r.t.Helper()
	if status, body := r.call(server, ""); status != 200 || !strings.Contains(body, want) {
		r.t.Errorf("call of %s = %d %s, want %s", server, status, body, want)
	}
}

// metrics returns what is counted.
func (r *running) metrics(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.g.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func (r *running) reload(o Options) *Reloaded {
	r.t.Helper()
	out, err := r.g.Reload(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// until waits for what happens in the background.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bridgetest.Patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen that", what)
		}
	}
}

func TestReloadServers(t *testing.T) {
	a, b, b2, c := &shelf{text: "of a"}, &shelf{text: "of b"}, &shelf{text: "of the other b"}, &shelf{text: "of c"}
	at := func(name string, s *shelf) ServerOptions { return ServerOptions{Name: name, Handler: s, Era: Legacy} }
	r := run(t, Options{Servers: []ServerOptions{at("a", a), at("b", b)}})
	r.wantCall("a", "of a")
	r.wantCall("b", "of b")
	a.settle(t)

	got := r.reload(Options{Servers: []ServerOptions{at("a", a), at("b", b2), at("c", c)}})
	if want := (&Reloaded{Added: []string{"c"}, Changed: []string{"b"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("Reload = %+v, want %+v", got, want)
	}
	r.wantCall("a", "of a")
	r.wantCall("b", "of the other b")
	r.wantCall("c", "of c")
	if opened, ended, _ := a.counts(); opened != ended+1 {
		t.Errorf("the server that is the same has %d sessions opened and %d ended, want one to be open", opened, ended)
	}
	until(t, "the session of the server that was replaced ended", func() bool { opened, ended, _ := b.counts(); return ended == opened })

	got = r.reload(Options{Servers: []ServerOptions{at("c", c)}})
	if want := (&Reloaded{Removed: []string{"a", "b"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("Reload = %+v, want %+v", got, want)
	}
	if status, body := r.call("a", ""); status != 404 || !strings.Contains(body, `there is no server named \"a\"; the servers are [c]`) {
		t.Errorf("call of a server that was removed = %d %s", status, body)
	}
	if got := r.g.Snapshot().Servers; len(got) != 1 || got[0].Name != "c" {
		t.Errorf("servers = %v, want c alone", got)
	}
}

// seriesOf returns the names and labels of a server's series.
func seriesOf(metrics, server string) (series []string) {
	for line := range strings.Lines(metrics) {
		if name, _, ok := strings.Cut(line, "} "); ok && strings.Contains(name, fmt.Sprintf("server=%q", server)) {
			series = append(series, name)
		}
	}
	return series
}

// Metrics of a server go with it, once it has ended, and begin at zero for another one of its
// name; those of servers that stay go on.
func TestReloadForgetsMetrics(t *testing.T) {
	a, b := &shelf{text: "of a"}, &shelf{text: "of b"}
	at := func(name string, s *shelf) ServerOptions { return ServerOptions{Name: name, Handler: s, Era: Legacy} }
	r := run(t, Options{Servers: []ServerOptions{at("a", a), at("b", b)}})
	r.wantCall("a", "of a")
	r.wantCall("b", "of b")
	b.settle(t)
	count := func(text string) int { return strings.Count(r.metrics(t), text) }
	calls := func(server string, n int) string {
		return fmt.Sprintf("mcpbridge_requests_total{era=\"modern\",method=\"tools/call\",outcome=\"ok\",server=%q} %d\n", server, n)
	}
	of := seriesOf(r.metrics(t), "a")
	if len(of) == 0 || count(calls("b", 1)) != 1 {
		t.Fatalf("%d series of a in\n%s", len(of), r.metrics(t))
	}
	r.reload(Options{Servers: []ServerOptions{at("a", a), at("b", &shelf{text: "of another b"})}}) // b is replaced, and then removed
	r.reload(Options{Servers: []ServerOptions{at("a", a)}})
	until(t, "nothing is told of b", func() bool { return count(`server="b"`) == 0 })
	now := seriesOf(r.metrics(t), "a") // perhaps more: its session may end meanwhile
	for _, series := range of {
		if !slices.Contains(now, series) {
			t.Errorf("%s is gone, of a, which stays", series)
		}
	}
	r.reload(Options{Servers: []ServerOptions{at("a", a), at("b", b)}})
	r.wantCall("b", "of b")
	until(t, "b is counted from zero", func() bool { return count(calls("b", 1)) == 1 })
	if text := r.metrics(t); strings.Contains(text, "} -") {
		t.Errorf("a gauge is below zero:\n%s", text)
	}
}

// A call in flight ends with its result, at the server that it was sent to.
func TestReloadInFlight(t *testing.T) {
	former := &shelf{text: "slow", hold: make(chan struct{})}
	r := run(t, Options{Servers: []ServerOptions{{Name: "a", Handler: former, Era: Legacy}}})
	done := make(chan string, 1)
	go func() {
		_, body := r.call("a", "")
		done <- body
	}()
	until(t, "the call arrived", func() bool { _, _, calls := former.counts(); return calls == 1 })
	r.reload(Options{Servers: []ServerOptions{{Name: "a", Handler: &shelf{text: "quick"}, Era: Legacy}}})
	r.wantCall("a", "quick")
	if opened, ended, _ := former.counts(); ended == opened {
		t.Error("the session ended while a call was in flight")
	}
	close(former.hold)
	if got := <-done; !strings.Contains(got, "slow") {
		t.Errorf("the call in flight = %s, want its result", got)
	}
	until(t, "its session ended", func() bool { opened, ended, _ := former.counts(); return ended == opened })
}

// A call that takes longer than Drain is told what became of it.
func TestReloadCutsOff(t *testing.T) {
	former := &shelf{text: "slow", hold: make(chan struct{})}
	defer close(former.hold)
	o := Options{Drain: 50 * time.Millisecond, Servers: []ServerOptions{{Name: "a", Handler: former, Era: Legacy}}}
	r := run(t, o)
	done := make(chan string, 1)
	go func() {
		_, body := r.call("a", "")
		done <- body
	}()
	until(t, "the call arrived", func() bool { _, _, calls := former.counts(); return calls == 1 })
	o.Servers = []ServerOptions{{Name: "a", Handler: &shelf{text: "quick"}, Era: Legacy}}
	r.reload(o)
	if got, want := <-done, `server \"a\" was changed in the gateway's configuration`; !strings.Contains(got, want) || !strings.Contains(got, "may have taken effect") {
		t.Errorf("the call that was cut off = %s, want %s", got, want)
	}
}

// Whatever is wrong, nothing has changed.
func TestReloadRefused(t *testing.T) {
	a := &shelf{text: "of a"}
	r := run(t, Options{Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}}})
	r.wantCall("a", "of a")
	a.settle(t)
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(50 * time.Millisecond)
	before := runtime.NumGoroutine()
	opened, ended, _ := a.counts()
	for name, o := range map[string]Options{
		"no way to the server":  {Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}, {Name: "b"}}},
		"two of one name":       {Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}, {Name: "a", Handler: &shelf{}}}},
		"a limit":               {Servers: []ServerOptions{{Name: "a", Handler: &shelf{}}}, Limits: map[string]int64{"body": 1}},
		"a short key":           {Servers: []ServerOptions{{Name: "a", Handler: &shelf{}}}, StateKeys: []string{"short"}},
		"an empty token":        {Servers: []ServerOptions{{Name: "a", Handler: &shelf{}, Auth: &Auth{Tokens: []StaticToken{{Name: "ada"}}}}}},
		"a name of another way": {Servers: []ServerOptions{{Name: "a", Handler: &shelf{}, Auth: &Auth{MTLS: &MTLS{}, Tokens: []StaticToken{{Name: "mtls:dns:ada", Token: "t"}}}}}},
		"an issuer twice":       {Servers: []ServerOptions{{Name: "a", Handler: &shelf{}, PublicURL: "https://mcp.example.com", Auth: &Auth{JWT: &JWT{Issuer: "https://id.example.com"}, OtherIssuers: []JWT{{Issuer: "https://id.example.com"}}}}}},
		"two that are asked": {Servers: []ServerOptions{{Name: "a", Handler: &shelf{}, PublicURL: "https://mcp.example.com", Auth: &Auth{OtherIssuers: []JWT{
			{Issuer: "https://id.example.com", Introspection: &Introspection{"a", "b"}}, {Issuer: "https://other.example.com", Introspection: &Introspection{"a", "b"}}}}}}},
		"a file of the audit": {Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}}, Audit: "/nowhere/at/all"},
	} {
		if out, err := r.g.Reload(o); err == nil {
			t.Errorf("%s: Reload = %+v, want an error", name, out)
		}
		r.wantCall("a", "of a")
	}
	if o, e, _ := a.counts(); o != opened || e != ended {
		t.Errorf("%d sessions opened and %d ended, want %d and %d", o, e, opened, ended)
	}
	until(t, "nothing was left", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return runtime.NumGoroutine() <= before
	})
}

// Other credentials count from the next request, and nobody is disturbed.
func TestReloadCredentials(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second func(*ServerOptions)
		want          string
	}{
		{"a header", func(s *ServerOptions) { s.Header = http.Header{"Authorization": {"Bearer one"}} },
			func(s *ServerOptions) { s.Header = http.Header{"Authorization": {"Bearer two"}} }, "Bearer two"},
		{"a token", func(s *ServerOptions) { s.UpstreamAuth = &UpstreamAuth{Token: "three"} },
			func(s *ServerOptions) { s.UpstreamAuth = &UpstreamAuth{Token: "four"} }, "Bearer four"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &shelf{text: "of a"}
			far := httptest.NewServer(a)
			t.Cleanup(far.Close)
			s := ServerOptions{Name: "a", URL: far.URL, Era: Legacy}
			tt.first(&s)
			r := run(t, Options{Servers: []ServerOptions{s}})
			r.wantCall("a", "of a")
			a.settle(t)
			before, _, _ := a.counts()
			tt.second(&s)
			if got, want := r.reload(Options{Servers: []ServerOptions{s}}), (&Reloaded{Renewed: []string{"a"}}); !reflect.DeepEqual(got, want) {
				t.Errorf("Reload = %+v, want %+v", got, want)
			}
			r.wantCall("a", "of a")
			if got := a.authorization[len(a.authorization)-1]; got != tt.want {
				t.Errorf("Authorization = %q, want %q", got, tt.want)
			}
			if opened, _, _ := a.counts(); opened != before {
				t.Errorf("%d sessions more, want that of before", opened-before)
			}
			if got := r.reload(Options{Servers: []ServerOptions{s}}); !reflect.DeepEqual(got, &Reloaded{}) {
				t.Errorf("Reload of the same = %+v, want nothing", got)
			}
		})
	}
}

// A server that is the same keeps the token that it was issued, also while its issuer is away; one whose
// client is another gets another token.
func TestReloadKeepsIssuedTokens(t *testing.T) {
	var issued atomic.Int32
	mux := http.NewServeMux()
	issuer := httptest.NewServer(mux)
	t.Cleanup(issuer.Close)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"%[1]s/token","token_endpoint_auth_methods_supported":["client_secret_basic"]}`, issuer.URL)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, issued.Add(1))
	})
	a := &shelf{text: "of a"}
	far := httptest.NewServer(a)
	t.Cleanup(far.Close)
	of := func(secret string) ServerOptions {
		return ServerOptions{Name: "a", URL: far.URL, Era: Legacy, UpstreamAuth: &UpstreamAuth{ClientCredentials: &IssuerClient{Issuer: issuer.URL, ClientID: "c", ClientSecret: secret}}}
	}
	r := run(t, Options{Servers: []ServerOptions{of("one")}})
	wantToken := func(want string) {
		t.Helper()
		r.wantCall("a", "of a")
		if got := a.authorization[len(a.authorization)-1]; got != "Bearer "+want {
			t.Errorf("Authorization = %q, want that with %s", got, want)
		}
	}
	wantToken("token-1")
	a.settle(t)
	r.reload(Options{Servers: []ServerOptions{of("one"), {Name: "b", Handler: &shelf{text: "of b"}, Era: Legacy}}})
	wantToken("token-1")
	r.reload(Options{Servers: []ServerOptions{of("two")}})
	wantToken("token-2")
}

var linkIn = regexp.MustCompile(`https?://[^ "]+/login/[A-Za-z0-9_-]+`)

// Principals log in on pages below the URL that is public now, also after a reload that has failed.
// Servers without such logins go on.
func TestReloadMovesPagesOfLogins(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(far.Close)
	b, dir := &shelf{text: "of b"}, t.TempDir()
	at := func(public string, more ...ServerOptions) Options {
		return Options{
			PublicURL: public, Auth: &Auth{Tokens: []StaticToken{{Name: "ada", Token: "token-of-ada-0123"}}},
			Logins:  Logins{UserDir: dir, Keys: []string{"0123456789abcdef"}},
			Servers: append([]ServerOptions{{Name: "b", Handler: b, Era: Legacy, PublicURL: "https://b.example.com/mcp", Auth: &Auth{}}}, more...),
		}
	}
	a := ServerOptions{Name: "a", URL: far.URL, Era: Modern, PublicURL: "https://a.example.com/mcp", UpstreamAuth: &UpstreamAuth{Login: &StoredLogin{PerPrincipal: true}}}
	r := run(t, at("https://first.example.com"))
	r.wantCall("b", "of b")
	b.settle(t)
	link := func(public string) string {
		t.Helper()
		status, body := r.call("a", "Bearer token-of-ada-0123")
		link := linkIn.FindString(body)
		if !strings.HasPrefix(link, public+"/login/") {
			t.Fatalf("call without a login = %d %s, want a link below %s", status, body, public)
		}
		return link
	}
	if out, err := r.g.Reload(at("https://mistaken.example.com", a, ServerOptions{Name: "c"})); err == nil {
		t.Fatalf("Reload with a server that has no way = %+v, want an error", out)
	}
	r.reload(at("https://first.example.com", a))
	link("https://first.example.com")
	if got := r.reload(at(r.front.URL+"/new", a)); !reflect.DeepEqual(got, &Reloaded{Changed: []string{"a"}}) {
		t.Errorf("Reload with another PublicURL = %+v, want a to be changed", got)
	}
	resp, err := http.Get(link(r.front.URL + "/new"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if page, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(page), `name="word"`) {
		t.Errorf("GET of the link = %d %s, want a page with a form", resp.StatusCode, page)
	}
	if opened, ended, _ := b.counts(); opened != ended+1 {
		t.Errorf("the server without logins has %d sessions opened and %d ended, want one to be open", opened, ended)
	}
}

// Tokens of clients come and go without a session of others being disturbed, also beside another
// way.
func TestReloadTokens(t *testing.T) {
	for name, beside := range map[string]*MTLS{"alone": nil, "beside certificates": {}} {
		t.Run(name, func(t *testing.T) { reloadTokens(t, beside) })
	}
}

func reloadTokens(t *testing.T, beside *MTLS) {
	a := &shelf{text: "of a"}
	with := func(tokens ...StaticToken) Options {
		return Options{Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}}, Auth: &Auth{Tokens: tokens, MTLS: beside}}
	}
	ada, bob := StaticToken{Name: "ada", Token: "token-of-ada"}, StaticToken{Name: "bob", Token: "token-of-bob"}
	r := run(t, with(ada))
	_, _ = r.call("a", "Bearer token-of-ada")
	a.settle(t)
	_, before, _ := a.counts()
	for i, tt := range []struct {
		reload   Options
		ada, bob int
	}{
		{with(ada), 200, 401}, {with(ada, bob), 200, 200}, {with(bob), 401, 200}, {with(ada), 200, 401},
	} {
		r.reload(tt.reload)
		asAda, _ := r.call("a", "Bearer token-of-ada")
		asBob, _ := r.call("a", "Bearer token-of-bob")
		if asAda != tt.ada || asBob != tt.bob {
			t.Errorf("%d: ada gets %d and bob %d, want %d and %d", i, asAda, asBob, tt.ada, tt.bob)
		}
	}
	if _, ended, _ := a.counts(); ended != before {
		t.Errorf("%d sessions ended, want none", ended-before)
	}
	if _, err := r.g.Reload(with(ada, StaticToken{Name: "eve", Token: ada.Token})); err == nil {
		t.Error("two principals with one token = nil, want an error")
	}
	if _, err := r.g.Reload(with(ada, StaticToken{Name: "dns:bob", Token: "token-of-bob"})); (err == nil) != (beside == nil) {
		t.Errorf("a token with the name of a certificate = %v", err)
	}
	none := with()
	none.Auth = nil
	if got := r.reload(none); !reflect.DeepEqual(got, &Reloaded{Changed: []string{"a"}}) {
		t.Errorf("Reload without tokens = %+v, want the server replaced", got)
	}
	r.wantCall("a", "of a")
}

// What is left out of the identities applies at once; all else replaces the servers.
func TestReloadShapes(t *testing.T) {
	a := &shelf{text: "of a"}
	base := Options{Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}}}
	r := run(t, base)
	live := base
	live.AllowedHosts, live.DebugErrors, live.BodyTimeout, live.StateKeys = []string{"example.com"}, true, time.Minute, []string{"0123456789abcdef"}
	live.Limits = map[string]int64{"body": 4096, "requests": 7, "memory": 64 << 20, "cache": 100_000}
	if got := r.reload(live); !reflect.DeepEqual(got, &Reloaded{}) {
		t.Errorf("Reload with what applies at once = %+v, want no server replaced", got)
	}
	for name, change := range map[string]func(*Options){
		"write timeout": func(o *Options) { o.WriteTimeout += time.Second },
		"a limit":       func(o *Options) { o.Limits = map[string]int64{"parked": 7} },
		"environment":   func(o *Options) { o.Environ = append([]string{"A=b"}, o.Environ...) },
		"public URL":    func(o *Options) { o.PublicURL += "https://mcp.example.com" },
	} {
		o := live
		change(&o)
		if got := r.reload(o); !reflect.DeepEqual(got, &Reloaded{Changed: []string{"a"}}) {
			t.Errorf("%s: Reload = %+v, want the server replaced", name, got)
		}
		r.wantCall("a", "of a")
		r.reload(live)
	}
}

// After the end there is nothing to reload.
func TestReloadEnded(t *testing.T) {
	a := &shelf{text: "of a"}
	g, err := New(Options{Servers: []ServerOptions{{Name: "a", Handler: a, Era: Legacy}}})
	if err != nil {
		t.Fatal(err)
	}
	g.EndStreams()
	if _, err := g.Reload(Options{Servers: []ServerOptions{{Name: "b", Handler: a, Era: Legacy}}}); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("Reload after EndStreams = %v, want that it is shutting down", err)
	}
	if err := g.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reload(Options{}); err != errEnded {
		t.Errorf("Reload after Shutdown = %v, want %v", err, errEnded)
	}
}
