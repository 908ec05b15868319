package login

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// take takes a port of this machine until the test ends.
func take(t *testing.T, port int) {
	t.Helper()
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Skip("the port is taken by another program: ", err)
	}
	t.Cleanup(func() { l.Close() })
}

func TestPortsOfServer(t *testing.T) {
	const server = "https://docs.example/mcp"
	got := portsOf(server)
	if len(got) != 3 || !slices.Equal(got, portsOf(server)) || slices.Equal(got, portsOf(server+"2")) {
		t.Errorf("portsOf = %v, %v, want three, the same for the same server", got, portsOf(server))
	}
	for _, p := range got {
		if p < 1024 || p >= 32768 {
			t.Errorf("port %d is one that systems give to any program", p)
		}
	}
}

// The browser returns to one of three ports, and to no other where a person has registered
// the client. A port that is given is the only one.
func TestRedirectPortTaken(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	f.ClientID = "mine"
	ports := portsOf(f.URL)
	for i, p := range ports {
		l, err := f.Run(testContext(t), r.challenge())
		if err != nil || l.Client.RedirectURI != "http://127.0.0.1:"+strconv.Itoa(p)+"/callback" {
			t.Fatalf("with %d ports taken: %+v, %v, want port %d", i, l, err, p)
		}
		take(t, p)
		if err := f.Store.Delete(f.URL); err != nil { // whose port would be the first
			t.Fatal(err)
		}
	}
	_, err := f.Run(testContext(t), r.challenge())
	wantError(t, err, "can't return to any of the ports")
	f.Port = ports[1]
	_, err = f.Run(testContext(t), r.challenge())
	wantError(t, err, "can't return to port "+strconv.Itoa(ports[1]))
	f.Port, f.ClientID = 0, ""
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Errorf("a client that registers itself: %v, want another port", err)
	}
}

// A client registers all redirect URIs, and so need not register again when one of the ports
// is taken.
func TestRegistersAllRedirectURIs(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	for i := range 2 {
		l, err := f.Run(testContext(t), r.challenge())
		if err != nil || l.Client.ID != "client-1" || len(r.regs) != 1 {
			t.Fatalf("login %d: %+v, %v, %d registrations, want one client", i, l, err, len(r.regs))
		}
		take(t, l.Client.port())
	}
	if got := r.regs[0]["redirect_uris"].([]any); len(got) != 3 {
		t.Errorf("redirect URIs = %v, want three", got)
	}
}

// The error that says what to register names all redirect URIs, or the one that is given.
func TestToldRedirectURIs(t *testing.T) {
	r := newRig(t)
	r.meta["registration_endpoint"] = nil
	f := r.flow()
	_, err := f.Run(testContext(t), r.challenge())
	for _, p := range portsOf(f.URL) {
		wantError(t, err, "http://127.0.0.1:"+strconv.Itoa(p)+"/callback")
	}
	f.Host, f.Port = hostName, portsOf(f.URL)[2]
	_, err = f.Run(testContext(t), r.challenge())
	wantError(t, err, "with the redirect URI http://localhost:"+strconv.Itoa(f.Port)+"/callback")
	if strings.Contains(err.Error(), "127.0.0.1:"+strconv.Itoa(f.Port)) {
		t.Errorf("the error names another host, too: %v", err)
	}
}

// A browser may be sent back to localhost, whose answers under another name are refused. The
// next login has the same host, and the client that a person has registered.
func TestRedirectToLocalhost(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	f.Host, f.ClientID = hostName, "mine"
	var refused int
	r.redirect = func(to *url.URL, _ url.Values) {
		resp, err := http.Get("http://127.0.0.1:" + to.Port() + "/callback?state=x")
		if err == nil {
			refused = resp.StatusCode
			resp.Body.Close()
		}
	}
	for range 2 {
		l, err := f.Run(testContext(t), r.challenge())
		if err != nil || l.Client.host() != hostName || l.Client.ID != "mine" || refused != http.StatusMisdirectedRequest {
			t.Fatalf("login = %+v, %v, want one by localhost; under another name: %d", l, err, refused)
		}
		f.Host, f.ClientID = "", ""
	}
}

// A person who runs mcpbridge login does not wait for a login that another process has asked
// for, and that process uses what came of it.
func TestLoginElsewhere(t *testing.T) {
	r := newRig(t)
	waits := r.flow()
	led := make(chan struct{})
	waits.Browse = func(string) error { close(led); return ErrNoBrowser }
	type outcome struct {
		*Login
		err error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the flow
		l, err := waits.runUnless(testContext(t), r.challenge(), func(l *Login) bool { return l.Token.Valid() })
		done <- outcome{l, err}
	}()
	<-led
	typed := r.flow()
	typed.Store = OpenStore(StoreOptions{Dir: waits.Store.dir, NoKeyring: true})
	if _, err := typed.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-done:
		if got.err != nil || got.Token.AccessToken != "access-1" {
			t.Errorf("the flow that waited = %+v, %v, want the login of the other", got.Login, got.err)
		}
	case <-time.After(bridgetest.Patience):
		t.Error("the flow still waits")
	}
}

func TestBrowserThatIsNone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have other commands")
	}
	for _, tt := range []struct {
		environ []string
		none    bool
	}{
		{nil, true},
		{[]string{"BROWSER=/nowhere/browser"}, true},
		{[]string{"BROWSER=false"}, true},
		{[]string{"BROWSER=true"}, false},
	} {
		if err := Browser(tt.environ)("http://127.0.0.1/"); errors.Is(err, ErrNoBrowser) != tt.none {
			t.Errorf("Browser(%v) = %v, want that there is none: %v", tt.environ, err, tt.none)
		}
	}
}
