package auth

import (
	"bufio"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A person has a folder in which mcpbridge keeps logins, and a browser.
type person struct {
	state   string
	browser string // a command
}

// newPerson returns one whose browser logs the user in.
func newPerson(t testing.TB, user string) *person {
	t.Helper()
	p := &person{state: t.TempDir(), browser: filepath.Join(t.TempDir(), "browser")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec env BROWSE_AS=" + user + " " + self + " \"$1\"\n"
	if err := os.WriteFile(p.browser, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *person) env() []string {
	return []string{"MCPBRIDGE_STATE_DIR=" + p.state, "MCPBRIDGE_KEYRING=false", "BROWSER=" + p.browser}
}

// login runs mcpbridge login, in a terminal with no browser: it follows the URL that stands
// on a line of its own.
func (p *person) login(t testing.TB, user string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs.Bridge, append([]string{"login", "--no-browser"}, args...)...)
	cmd.Env = append(os.Environ(), p.env()...)
	var log process.Tail
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if u, err := url.Parse(strings.TrimSpace(lines.Text())); err == nil && u.Query().Has("code_challenge") {
			if err := browse(u.String(), user); err != nil {
				t.Error(err)
				_ = cmd.Process.Kill()
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("mcpbridge login ended with %v; it wrote:\n%s", err, log.String())
	}
}

// wrap is a target of mcpbridge wrap before a server.
func (p *person) wrap(url string, flags ...string) *remote.Target {
	argv := append([]string{"/usr/bin/env"}, p.env()...)
	argv = append(append(argv, programs.Bridge, "wrap"), append(flags, url)...)
	return &remote.Target{Transport: "stdio", Argv: process.WithCache(argv...), Capabilities: json.RawMessage("{}")}
}

// TestExamplesByWrap takes clients that know nothing of logins to each example of a
// protected server, by mcpbridge wrap: after mcpbridge login, and with a login on demand.
func TestExamplesByWrap(t *testing.T) {
	takeTurn(t)
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			url := e.start(t)
			loggedIn := newPerson(t, "alice")
			loggedIn.login(t, "alice", url)
			for _, c := range clients {
				t.Run(c.name+" after login", func(t *testing.T) { e.through(t, &c, loggedIn.wrap(url)) })
			}
			t.Run("on demand", func(t *testing.T) { e.through(t, &clients[1], newPerson(t, "alice").wrap(url)) })
		})
	}
}

// through calls the example's tool.
func (e *example) through(t *testing.T, c *client, at *remote.Target) {
	s := c.begin(t)
	request(t, s, "initialize", at, nil)
	var got called
	request(t, s, "tools/call", e.call, &got)
	e.judge(t, &got)
}

// TestFiveProcessesRefreshOnce proves that of five processes that find their token expired
// at the same moment one refreshes it for all.
func TestFiveProcessesRefreshOnce(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	as.set(t, map[string]any{"ttl": 30})
	e := exampleOf(t, as)
	p := newPerson(t, "alice")
	p.login(t, "alice", e)
	go180 := clients[3]
	var five []*steer.Client
	for range 5 {
		s := go180.begin(t)
		request(t, s, "initialize", p.wrap(e), nil)
		five = append(five, s)
	}
	as.set(t, map[string]any{"delay": 500, "revoke": "access"})
	before := len(as.events(t, "grant.success", "refresh_token"))
	var all sync.WaitGroup
	for _, s := range five {
		all.Go(func() {
			var got called
			if err := try(t.Context(), s, "tools/call", examples[0].call, &got); err != nil {
				t.Error(err)
			}
			examples[0].judge(t, &got)
		})
	}
	all.Wait()
	if n := len(as.events(t, "grant.success", "refresh_token")) - before; n != 1 {
		t.Errorf("the authorization server was asked for %d refreshes, want 1", n)
	}
	if failed := as.events(t, "grant.error", ""); len(failed) != 0 {
		t.Errorf("it refused %+v", failed)
	}
}
