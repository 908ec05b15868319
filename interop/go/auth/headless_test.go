package auth

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// withoutBrowser is mcpbridge wrap on a machine without a display.
func (p *person) withoutBrowser(url string) []string {
	argv := append([]string{"/usr/bin/env", "-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", "-u", "BROWSER"}, p.env()[:2]...)
	return append(argv, programs.Bridge, "wrap", url)
}

// A host is a legacy client that writes lines to wrap, and goes on after errors.
type host struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Scanner
	last int
}

func newHost(t *testing.T, argv ...string) *host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	log := new(process.Tail)
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its status is not what is tested
		if t.Failed() {
			t.Logf("mcpbridge wrote:\n%s", log.String())
		}
	})
	return &host{t: t, in: in, out: bufio.NewScanner(out)}
}

// ask sends a request, and returns the text of its error, or its result, and how long that took.
func (h *host) ask(method, params string) (failed string, result json.RawMessage, took time.Duration) {
	h.t.Helper()
	h.last++
	began := time.Now()
	if _, err := fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", h.last, method, params); err != nil {
		h.t.Fatal(err)
	}
	for h.out.Scan() {
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  struct{ Message string }
		}
		if err := json.Unmarshal(h.out.Bytes(), &m); err != nil {
			h.t.Fatal(err)
		}
		if m.ID == h.last && m.Method == "" {
			return m.Error.Message, m.Result, time.Since(began)
		}
	}
	h.t.Fatalf("wrap has ended during %s", method)
	return "", nil, 0
}

func (h *host) initialize() (failed string, took time.Duration) {
	h.t.Helper()
	failed, _, took = h.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"host","version":"1"}}`)
	return failed, took
}

// TestHeadlessWrap has wrap start where no browser can be opened: the client is told soon
// which command logs in, nobody is asked during initialize, and once that was done the same
// process serves the client.
func TestHeadlessWrap(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	url := protected(t, as).endpoint("modern")
	p := newPerson(t, "alice")
	h := newHost(t, p.withoutBrowser(url)...)
	for range 2 {
		if failed, took := h.initialize(); !strings.Contains(failed, "run mcpbridge login "+url) || took > 10*time.Second {
			t.Fatalf("initialize: %q after %v, want the command that logs in, soon", failed, took)
		}
	}
	p.login(t, "alice", url)
	time.Sleep(2 * time.Second)
	if failed, took := h.initialize(); failed != "" {
		t.Fatalf("initialize after the login: %q after %v", failed, took)
	}
	if failed, result, _ := h.ask("tools/call", `{"name":"test_simple_text","arguments":{}}`); failed != "" || !bytes.Contains(result, []byte("a simple text")) {
		t.Errorf("the call after the login: %q %s", failed, result)
	}
}

// TestDeniedOnce has a person refuse in the browser: no tab is opened again by what the client
// asks next, and each request says what to do.
func TestDeniedOnce(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	url := protected(t, as).endpoint("modern")
	p := newPerson(t, "nobody")
	tabs := p.browser + ".tabs"
	script, err := os.ReadFile(p.browser)
	if err != nil {
		t.Fatal(err)
	}
	counting := strings.Replace(string(script), "\n", "\necho tab >>"+tabs+"\n", 1)
	if err := os.WriteFile(p.browser, []byte(counting), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, append(append([]string{"/usr/bin/env"}, p.env()...), programs.Bridge, "wrap", url)...)
	for range 5 {
		failed, took := h.initialize()
		if !strings.Contains(failed, "run mcpbridge login "+url) || took > 25*time.Second {
			t.Errorf("initialize: %q after %v, want the command that logs in", failed, took)
		}
		time.Sleep(time.Second)
	}
	opened, err := os.ReadFile(tabs)
	if n := bytes.Count(opened, []byte("tab")); n != 1 {
		t.Errorf("%d tabs were opened (%v), want one", n, err)
	}
	if denied := as.events(t, "authorization.error", ""); len(denied) != 1 || denied[0].Error != "access_denied" {
		t.Errorf("at the authorization server: %+v, want one refusal", denied)
	}
	p.login(t, "alice", url)
	time.Sleep(2 * time.Second)
	if failed, took := h.initialize(); failed != "" {
		t.Errorf("initialize after the command: %q after %v", failed, took)
	}
}

// TestClientsVisit takes clients of both eras that take URLs to a server whose login has ended, where no
// browser can be opened: the call leads to the page, and goes on after it.
func TestClientsVisit(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	url := protected(t, as).endpoint("modern")
	for _, c := range []client{clients[0], clients[1], clients[3]} {
		t.Run(c.name, func(t *testing.T) {
			p := newPerson(t, "alice")
			p.login(t, "alice", url)
			s := c.begin(t)
			at := &remote.Target{Transport: "stdio", Argv: process.WithCache(p.withoutBrowser(url)...), Capabilities: json.RawMessage(`{"elicitation":{"url":{}}}`)}
			request(t, s, "initialize", at, nil)
			c.works(t, s)
			logout := exec.Command(programs.Bridge, "logout", url)
			logout.Env = append(os.Environ(), p.env()...)
			if out, err := logout.CombinedOutput(); err != nil {
				t.Fatalf("logout: %v\n%s", err, out)
			}
			time.Sleep(3 * time.Second) // wrap looks every 2
			s.Expect(map[string]json.RawMessage{"elicitation/create": json.RawMessage(`{"action":"accept"}`)})
			visited := make(chan error, 1)
			go func() { // ends with the question, or without one
				q, ok := s.Asked.Take(time.Minute)
				if !ok {
					visited <- errors.New("nobody was asked")
					return
				}
				params, _ := q.(map[string]any)["params"].(map[string]any)
				page, _ := params["url"].(string)
				if params["mode"] != "url" {
					visited <- fmt.Errorf("the question is %v", q)
					return
				}
				visited <- browse(page, "alice")
			}()
			c.works(t, s)
			if err := <-visited; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReturnToLocalhost logs in with an authorization server that compares redirect URIs, by
// the name localhost; and a port that is given is used alone.
func TestReturnToLocalhost(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	url := protected(t, as).endpoint("modern")
	p := newPerson(t, "alice")
	p.login(t, "alice", url, "--redirect-host", "localhost")
	got := as.events(t, "authorization.success", "")
	if len(got) != 1 || !strings.HasPrefix(got[0].RedirectURI, "http://localhost:") {
		t.Errorf("the browser was sent back to %+v, want localhost", got)
	}
	taken := newIssuer(t) // has a port
	port := taken.url[strings.LastIndex(taken.url, ":")+1:]
	cmd := exec.Command(programs.Bridge, "login", "--no-browser", "--port", port, url)
	cmd.Env = append(os.Environ(), p.env()...)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "can't return to port "+port) {
		t.Errorf("login at a port that is taken: %v\n%s", err, out)
	}
}
