package auth

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestOutageCostsNoLogin has the authorization server answer 503 to everything while a token
// of wrap has to be refreshed, and until after its end: calls go on as long as the token
// lives, then say why they can't, and go on when the server is back. Nobody logs in again.
func TestOutageCostsNoLogin(t *testing.T) {
	t.Parallel()
	const life = 30 * time.Second
	as := newIssuer(t)
	as.set(t, map[string]any{"ttl": life.Seconds()})
	b := protected(t, as)
	url := b.endpoint("modern")
	p := newPerson(t, "alice")
	began := time.Now() // the token ends life later, at the earliest
	p.login(t, "alice", url)
	c := &clients[3]
	s := c.begin(t)
	defer func() {
		if t.Failed() { // a call without a reply: the logs say then where it waits
			_ = exec.Command("pkill", "-QUIT", "-P", fmt.Sprint(s.Pid())).Run()
			_ = exec.Command("kill", "-QUIT", fmt.Sprint(s.Pid()), fmt.Sprint(b.Pid())).Run()
			time.Sleep(time.Second)
		}
	}()
	request(t, s, "initialize", p.wrap(url), nil)
	c.works(t, s)
	as.set(t, map[string]any{"down": true})
	for time.Since(began) < life-time.Second && !t.Failed() {
		c.works(t, s)
		time.Sleep(250 * time.Millisecond)
	}
	call := map[string]any{"name": "test_simple_text", "arguments": map[string]any{}}
	var err error
	for err == nil && time.Since(began) < 3*life { // a slow machine may have refreshed it once
		err = try(t.Context(), s, "tools/call", call, nil)
		time.Sleep(250 * time.Millisecond)
	}
	if err == nil || !strings.Contains(err.Error(), "HTTP 503") || !strings.Contains(err.Error(), "try again") {
		t.Errorf("after the token's end: %v, want an error that says why, and to try again", err)
	}
	as.set(t, map[string]any{"down": false})
	time.Sleep(3 * time.Second) // refreshing pauses for 2
	c.works(t, s)
	if n := len(as.events(t, "authorization.success", "")); n != 1 {
		t.Errorf("somebody logged in %d times, want once", n)
	}
	if n := len(as.events(t, "grant.success", "refresh_token")); n == 0 {
		t.Error("nobody refreshed")
	}
}
