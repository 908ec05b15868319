package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestIssuerAway stops the issuer for 10 s in the middle of the day, when a token with a key that
// nobody knows has its keys fetched: calls with valid tokens go on, and new tokens work once the
// issuer is back.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	as := newIssuer(t)
	url := protected(t, as, "    era: client").endpoint("modern")
	login, unused := as.login(t, "alice", url, "mcp:use"), as.login(t, "bob", url, "mcp:use")
	valid := func(token string) {
		t.Helper()
		if a := callTool(t, url, token, "test_simple_text"); a.status != http.StatusOK {
			t.Errorf("a call with a valid token: %d %s", a.status, a.body)
		}
	}
	valid(login.Access)
	time.Sleep(keysRest)
	if err := syscall.Kill(as.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := func() { _ = syscall.Kill(as.Pid(), syscall.SIGCONT) } // it is there until the test ends
	t.Cleanup(resume)
	_, rest, _ := strings.Cut(login.Access, ".")
	unknown := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"at+jwt","kid":"unknown"}`)) + "." + rest
	refused := make(chan error, 1)
	go func() { // ends with the answer
		res, err := send(t.Context(), url, unknown, "tools/call", `"name":"test_simple_text","arguments":{},`, "Mcp-Name", "test_simple_text")
		if err == nil {
			defer res.Body.Close()
			if res.StatusCode == http.StatusOK {
				t.Error("a token with an unknown key was accepted")
			}
		}
		refused <- err
	}()
	goOn(t, refused, func() {
		valid(login.Access)
		valid(unused.Access) // whose signature nobody has seen before
	})
	resume()
	if err := <-refused; err != nil {
		t.Errorf("a token with an unknown key: %v", err)
	}
	valid(login.Access)
	if a := callTool(t, url, as.refresh(t, login).Access, "test_simple_text"); a.status != http.StatusOK {
		t.Errorf("a new token, when the issuer is back: %d %s", a.status, a.body)
	}
}

// goOn has calls with valid tokens made for 10 s. The one with an unknown key waits for the keys, for
// as long: some of the others have to be answered before it.
func goOn(t *testing.T, refused <-chan error, calls func()) {
	t.Helper()
	time.Sleep(time.Second) // it waits
	meanwhile := 0
	for end := time.Now().Add(9 * time.Second); time.Now().Before(end); {
		calls()
		if time.Sleep(100 * time.Millisecond); len(refused) == 0 {
			meanwhile++
		}
	}
	if meanwhile == 0 {
		t.Error("calls with valid tokens wait as long as one with an unknown key")
	}
}
