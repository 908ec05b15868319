package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// How a server is reached is told without credentials.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		s    ServerOptions
		want string
	}{
		{ServerOptions{URL: "https://ada:pw@example.com/mcp?key=k&a=b"}, "https://example.com/mcp?a=" + redact.Hidden + "&key=" + redact.Hidden},
		{ServerOptions{URL: "http://127.0.0.1:1/mcp"}, "http://127.0.0.1:1/mcp"},
		{ServerOptions{URL: "http://[::1"}, redact.Hidden},
		{ServerOptions{Command: []string{"npx", "-y", "some server", "--token", "abc", "it's"}}, `npx -y 'some server' --token ` + redact.Hidden + ` 'it'\''s'`},
		{ServerOptions{Command: []string{"x", "--api-key=abc", ""}}, "x --api-key=" + redact.Hidden + " ''"},
		{ServerOptions{Handler: http.NotFoundHandler()}, "in this process"},
	} {
		if got := reached(&tt.s); got != tt.want {
			t.Errorf("reached = %s, want %s", got, tt.want)
		}
	}
	for a, want := range map[*UpstreamAuth]string{nil: "", {Token: "t"}: "a token of the configuration", {Login: &StoredLogin{Principal: "ada"}}: "the stored login of ada", {Passthrough: true}: "the token of each caller"} {
		if got := a.words(); got != want {
			t.Errorf("credentials = %q, want %q", got, want)
		}
	}
}

// The room of a server has its options without values, and what it has said. A group has none, and
// looking asks nobody.
func TestServerRoom(t *testing.T) {
	one := &shelf{text: "one"}
	s := httptest.NewServer(one)
	t.Cleanup(s.Close)
	r := run(t, Options{
		Servers: []ServerOptions{{Name: "docs", URL: s.URL + "/mcp", Header: http.Header{"X-Key": {"the-secret"}}, Pin: PinOff}},
		Groups:  []GroupOptions{{Name: "all", Members: []string{"docs"}}},
	})
	g := hook{}.Inner(r.g)
	until(t, "it is ready", func() bool { return g.ServerRoom("docs").State == "ready" })
	opened, _, _ := one.counts()
	room := g.ServerRoom("docs")
	if room.Reached != s.URL+"/mcp" || !slices.Equal(room.Headers, []string{"X-Key"}) || room.Era != "legacy" || room.Transport != "http" || room.Proof || room.Pin != "" || !strings.Contains(string(room.Info), `"version":"1"`) {
		t.Errorf("the room is %+v", room)
	}
	if again, _, _ := one.counts(); again != opened {
		t.Errorf("looking has opened %d sessions", again-opened)
	}
	if g.ServerRoom("all") != nil || g.ServerRoom("none") != nil {
		t.Error("a group, or nothing, has the room of a server")
	}
	if _, err := g.ToolChanges(t.Context(), "docs"); err == nil || !strings.Contains(err.Error(), "pin: warn") {
		t.Errorf("changes where nothing is pinned: %v", err)
	}
}

// A restart replaces one server, and nothing else; calls in flight go on.
func TestRestart(t *testing.T) {
	one, two := &shelf{text: "one", hold: make(chan struct{})}, &shelf{text: "two"}
	s1, s2 := httptest.NewServer(one), httptest.NewServer(two)
	t.Cleanup(s1.Close)
	t.Cleanup(s2.Close)
	r := run(t, Options{Servers: []ServerOptions{{Name: "one", URL: s1.URL}, {Name: "two", URL: s2.URL}}})
	g := hook{}.Inner(r.g)
	status, body := make(chan int, 1), make(chan string, 1)
	go func() { // ends with the call
		code, text := r.call("one", "")
		status <- code
		body <- text
	}()
	until(t, "the call has begun", func() bool { _, _, calls := one.counts(); return calls == 1 })
	if _, text := r.call("two", ""); !strings.Contains(text, "two") {
		t.Fatal(text)
	}
	partsOne, partsTwo := r.g.current.find("one"), r.g.current.find("two")
	if err := g.Restart("one"); err != nil {
		t.Fatal(err)
	}
	if r.g.current.find("one") == partsOne || r.g.current.find("two") != partsTwo {
		t.Error("not the one server was replaced")
	}
	close(one.hold)
	if code, text := <-status, <-body; code != http.StatusOK || !strings.Contains(text, "one") {
		t.Errorf("the call in flight = %d %s", code, text)
	}
	if err := g.Restart("none"); err == nil || !strings.Contains(err.Error(), "it is not served") {
		t.Errorf("restarting nothing = %v", err)
	}
}
