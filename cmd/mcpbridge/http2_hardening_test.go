package main

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// http2Client returns a client of a listener with HTTP/2.
func http2Client(t *testing.T, a *bridgetest.Authority) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(a)}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: bridgetest.Patience}
}

// overHTTP2 returns a request of 2026-07-28 with a body that may be slow to come.
func overHTTP2(t *testing.T, url, method string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
		req.Header.Set(k, v)
	}
	return req
}

// A body over HTTP/2 has body_timeout, as one over HTTP/1.1: a client that sends a byte
// now and then holds no request open.
func TestHardeningSlowBodyOverHTTP2(t *testing.T) {
	path, a := secured(t, "body_timeout: 300ms\n"+securely)
	s := serve(t, nil, "-c", path)
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() { // until the pipe is closed
		for {
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	begun := time.Now()
	resp, err := http2Client(t, a).Do(overHTTP2(t, s.Endpoints[0].URL, "tools/list", r))
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode < 400 || resp.ProtoMajor != 2 {
			t.Errorf("a body without end = %d over HTTP/%d, want it refused", resp.StatusCode, resp.ProtoMajor)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it was refused after %v", took)
	}
}

// What a client does not read over HTTP/2 does not wait for it longer than write_timeout.
func TestHardeningStalledReaderOverHTTP2(t *testing.T) {
	t.Parallel()          // it waits
	const size = 24 << 20 // more than a client's windows
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := wire.Parse(body, wire.Options{})
		if m.Method == spec.MethodDiscover {
			backtest.Reply(w, http.StatusOK, "", backtest.SaysModern, m.ID)
			return
		}
		backtest.Reply(w, http.StatusOK, "application/json", `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[{"name":"`+strings.Repeat("x", size)+`","inputSchema":{"type":"object"}}]}}`, m.ID)
	}))
	defer large.Close()
	path, a := secured(t, "write_timeout: 1s\ntls: {cert: cert.pem, key: key.pem}\nservers: {large: {url: '"+large.URL+"', era: modern}}\n")
	s := serve(t, nil, "-c", path)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	resp, err := http2Client(t, a).Do(overHTTP2(t, s.Endpoints[0].URL, "tools/list", strings.NewReader(list)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Fatalf("tools/list = %d over HTTP/%d", resp.StatusCode, resp.ProtoMajor)
	}
	time.Sleep(4 * time.Second) // read nothing
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil || n >= size {
		t.Errorf("%d bytes and %v after a pause of 4 s, want the response cut off after 1 s", n, err)
	}
	if errors.Is(err, io.EOF) {
		t.Errorf("the response ends as if it were whole: %v", err)
	}
}

// Headers over HTTP/2 are bounded as those over HTTP/1.1.
func TestHardeningLargeHeadersOverHTTP2(t *testing.T) {
	path, a := secured(t, securely)
	s := serve(t, nil, "-c", path)
	req := overHTTP2(t, s.Endpoints[0].URL, "tools/list", strings.NewReader("{}"))
	req.Header.Set("X-Large", strings.Repeat("x", 128<<10))
	resp, err := http2Client(t, a).Do(req)
	if err != nil {
		return // the connection was ended
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("128 KiB of headers = %d, want 431", resp.StatusCode)
	}
}

// A page whose name was rebound to this machine is refused over HTTP/2, too, whatever it
// writes into which header.
func TestHardeningReboundNameOverHTTP2(t *testing.T) {
	path, a := secured(t, securely)
	s := serve(t, nil, "-c", path)
	for name, change := range map[string]func(*http.Request){
		":authority": func(r *http.Request) { r.Host = "evil.example" },
		"Origin":     func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		req := overHTTP2(t, s.Endpoints[0].URL, "tools/list", strings.NewReader("{}"))
		change(req)
		resp, err := http2Client(t, a).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || resp.ProtoMajor != 2 {
			t.Errorf("%s of another name = %d over HTTP/%d, want 403", name, resp.StatusCode, resp.ProtoMajor)
		}
	}
}
