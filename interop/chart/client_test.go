//go:build linux

package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A client of an endpoint connects for each request to the next of some hosts.
type client struct {
	http http.Client
	url  string
	next atomic.Uint32
}

func newClient(n *network, path string, hosts ...string) *client {
	c := &client{url: "http://mcp" + path}
	c.http.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return n.dial(ctx, network, hosts[int(c.next.Add(1))%len(hosts)]+":2526")
		},
	}
	return c
}

// do sends a message, in a session if there is one, and returns the response and its body.
func (c *client) do(t *testing.T, session, message string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, strings.NewReader(message))
	must(t, err)
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &http.Response{}, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(body)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`

// use has a session that each of the addresses serves, with a note.
func (c *client) use(t *testing.T) {
	t.Helper()
	session := c.open(t)
	for i := range 7 {
		c.edit(t, session, i)
	}
}

// open returns a session.
func (c *client) open(t *testing.T) string {
	t.Helper()
	resp, body := c.do(t, "", initialize)
	session := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != http.StatusOK || session == "" {
		t.Fatalf("initialize = %d %s", resp.StatusCode, body)
	}
	c.do(t, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return session
}

// edit writes a note by one connection, and reads it by the next.
func (c *client) edit(t *testing.T, session string, i int) {
	t.Helper()
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"edit_note","arguments":{"name":"todo","text":"round %d"}}}`, i+2, i)
	if resp, body := c.do(t, session, call); resp.StatusCode != http.StatusOK || strings.Contains(body, `"error"`) {
		t.Errorf("call %d = %d %s", i, resp.StatusCode, body)
	}
	read := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"note://todo"}}`, i+1000)
	if resp, body := c.do(t, session, read); resp.StatusCode != http.StatusOK || !strings.Contains(body, fmt.Sprintf(`round %d"`, i)) {
		t.Errorf("read %d = %d %s", i, resp.StatusCode, body)
	}
}

// ready waits until an address of the network answers with 200.
func (n *network) ready(t *testing.T, addr, path string) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.dial}}
	var last error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		resp, err := c.Get("http://" + addr + path)
		if last = err; err != nil {
			continue
		}
		_ = resp.Body.Close()
		if last = errors.New(resp.Status); resp.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s%s is not ready: %v", addr, path, last)
}

// metric waits until a replica has a line in what Prometheus would scrape.
func (n *network) metric(t *testing.T, addr, token, want string) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.dial}}
	var last string
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+":2527/metrics", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := c.Do(req)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		must(t, err)
		if last = string(body); strings.Contains(last, "\n"+want+"\n") {
			return
		}
	}
	name, _, _ := strings.Cut(want, " ")
	name, _, _ = strings.Cut(name, "{")
	t.Fatalf("%s has not %s: %q", addr, want, regexp.MustCompile(`(?m)^`+name+`.*`).FindAllString(last, -1))
}

// until waits until the endpoint is there, at each balancer and with each replica behind it.
func (c *client) until(t *testing.T) {
	t.Helper()
	var last string
	for end, inARow := time.Now().Add(3*time.Minute), 0; time.Now().Before(end); {
		resp, body := c.do(t, "", initialize)
		if last = body; resp.StatusCode != http.StatusOK {
			inARow = 0
			time.Sleep(200 * time.Millisecond)
		} else if inARow++; inARow == 9 { // each of three balancers has each of three replicas
			return
		}
	}
	t.Fatalf("%s answers %s", c.url, last)
}
