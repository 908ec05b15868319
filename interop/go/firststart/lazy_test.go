package firststart

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestM2L02LazyLock has a legacy client come back, over HTTP, to a server that locks with the
// first call, as browsers do with a profile: a second process starts, and refuses to work. The
// client has ended its session, or was killed.
func TestM2L02LazyLock(t *testing.T) {
	for name, pause := range map[string]time.Duration{"ended": 0, "ended long ago": 900 * time.Millisecond, "killed": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := newStand(t, lazy)
			v := at.serve()
			defer v.stop(t)
			for range 3 {
				u := openUser(t, v.to.URL, "ada")
				u.calls(t)
				if name == "killed" {
					u.vanish()
				} else {
					u.end(t)
				}
				time.Sleep(pause)
			}
			at.alone(t)
		})
	}
}

// TestM2L02LazyLockInUse has clients come while another one may still be there: the process of
// that one stays, and they get the server's own refusal.
func TestM2L02LazyLockInUse(t *testing.T) {
	t.Parallel()
	at := newStand(t, lazy)
	v := at.serve()
	defer v.stop(t)
	first := openUser(t, v.to.URL, "ada")
	first.calls(t)
	time.Sleep(1500 * time.Millisecond)
	for _, name := range []string{"ada", "bob"} { // the first one's stream is open
		u := openUser(t, v.to.URL, name)
		if got := u.call(t); !strings.Contains(got, "Browser is already in use") {
			t.Errorf("a client that comes beside another gets %s, want the server's refusal", got)
		}
		u.end(t)
	}
	first.calls(t)
	first.end(t)
}

// lazy is a command that locks with the first call, and takes a moment to give that up.
func lazy(starts, dir string) []string {
	return []string{fill("{bin}/odd"), "-starts", starts, "-lazy", filepath.Join(dir, "profile"), "-release", "700ms", fill("{bin}/legacy-go")}
}

// alone holds that no two processes ran at once.
func (s *stand) alone(t *testing.T) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(s.dir, "profile.beside")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("processes that ran beside another: %q, %v", text, err)
	}
}

// A user is a legacy client over HTTP with a stream open. It can vanish.
type user struct {
	http.Client
	url, session string
	cut          context.CancelFunc // of its stream
	stream       chan struct{}      // closed when that has ended
}

func openUser(t *testing.T, url, name string) *user {
	t.Helper()
	u := &user{url: url, Client: http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	res := u.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}}}`)
	u.session = res.Header.Get("Mcp-Session-Id")
	if got := read(t, res); u.session == "" || !strings.Contains(got, "serverInfo") {
		t.Fatalf("initialize: %s: %s", res.Status, got)
	}
	read(t, u.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	ctx, cancel := context.WithCancel(context.Background())
	u.cut, u.stream = cancel, make(chan struct{})
	opened := make(chan error, 1)
	go func() { // ends with ctx
		defer close(u.stream)
		res, err := u.do(ctx, http.MethodGet, "")
		opened <- err
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // until it is cut
			_ = res.Body.Close()
		}
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *user) do(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if body != "" {
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	if u.session != "" {
		req.Header.Set("Mcp-Session-Id", u.session)
	}
	return u.Client.Do(req)
}

func (u *user) post(t *testing.T, body string) *http.Response {
	t.Helper()
	res, err := u.do(context.Background(), http.MethodPost, body)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// read returns the JSON of a response, which may be an event.
func read(t *testing.T, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	var last string
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text := strings.TrimPrefix(lines.Text(), "data: "); json.Valid([]byte(text)) {
			last = text
		}
	}
	return last
}

func (u *user) call(t *testing.T) string {
	t.Helper()
	return read(t, u.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+returns+`}`))
}

// calls holds that the server works for the client.
func (u *user) calls(t *testing.T) {
	t.Helper()
	if got := u.call(t); !strings.Contains(got, "content") || strings.Contains(got, "isError\":true") {
		t.Errorf("a call returns %s", got)
	}
}

// vanish is what is seen of a client that is killed.
func (u *user) vanish() {
	u.cut()
	<-u.stream
	u.CloseIdleConnections()
}

// end ends the session.
func (u *user) end(t *testing.T) {
	t.Helper()
	res, err := u.do(context.Background(), http.MethodDelete, "")
	if err != nil {
		t.Fatal(err)
	}
	read(t, res)
	u.vanish()
}
