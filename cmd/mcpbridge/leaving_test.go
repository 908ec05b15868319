package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Before a shutdown begins, what is in front of mcpbridge has drain_delay to notice:
// /readyz says it, and requests are served, each with the word that its connection ends.
func TestServesWhileItIsAboutToDrain(t *testing.T) {
	t.Parallel()                  // it waits
	const delay = 5 * time.Second // in which all requests have to be served, on a busy machine too
	s := serve(t, []string{fmt.Sprintf("MCPBRIDGE_DRAIN_DELAY=%v", delay)})
	bridgetest.Eventually(t, "ready", func() bool { code, _ := get(t, s.Admin+"/readyz"); return code == http.StatusOK })
	client := &http.Client{Transport: &http.Transport{}}
	if resp := request(t.Context(), t, client, s.Endpoints[0].URL); resp.StatusCode != http.StatusOK || resp.Close {
		t.Fatalf("before: %s, the connection ends: %v", resp.Status, resp.Close)
	}
	began, ended := time.Now(), make(chan int, 1)
	go func() { ended <- s.stop() }() // ends with serve
	bridgetest.Eventually(t, "draining", func() bool { code, _ := get(t, s.Admin+"/readyz"); return code == http.StatusServiceUnavailable })
	if _, body := get(t, s.Admin+"/readyz"); !strings.Contains(body, `"draining"`) {
		t.Errorf("/readyz = %s, want draining", body)
	}
	if code, _ := get(t, s.Admin+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz = %d, want 200", code)
	}
	for range 2 { // the second on a new connection
		if resp := request(t.Context(), t, client, s.Endpoints[0].URL); resp.StatusCode != http.StatusOK || !resp.Close {
			t.Errorf("about to drain: %s, the connection ends: %v; want 200, and that it does", resp.Status, resp.Close)
		}
	}
	if code := <-ended; code != 0 {
		t.Errorf("serve ended with %d: %s", code, s.log)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("serve ended after %v, want %v at least", took, delay)
	}
}

// A connection of HTTP/2 is not used again, either.
func TestHTTP2ConnectionsEndBeforeTheDrain(t *testing.T) {
	t.Parallel() // it waits
	path, a := secured(t, securely+"drain_delay: 6s\n")
	s := serve(t, nil, "-c", path)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(a)}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for range 2 { // on one connection
		if resp := request(t.Context(), t, client, s.Endpoints[0].URL); resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
			t.Fatalf("before: %s %s", resp.Proto, resp.Status)
		}
	}
	ended := make(chan int, 1)
	go func() { ended <- s.stop() }() // ends with serve
	bridgetest.Eventually(t, "draining", func() bool { code, _ := get(t, s.Admin+"/readyz"); return code == http.StatusServiceUnavailable })
	for range 3 {
		anew := false
		bridgetest.Eventually(t, "a new connection", func() bool {
			trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { anew = !c.Reused }}
			resp := request(httptrace.WithClientTrace(t.Context(), trace), t, client, s.Endpoints[0].URL)
			return resp.StatusCode == http.StatusOK && anew
		})
	}
	if code := <-ended; code != 0 {
		t.Errorf("serve ended with %d: %s", code, s.log)
	}
}

// request sends one request of a modern client.
func request(ctx context.Context, t *testing.T, c *http.Client, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(modernRequest("1", "tools/list", "")))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
	} {
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp
}
