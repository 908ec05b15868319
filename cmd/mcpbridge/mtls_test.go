package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// issued writes the configuration of a client of an endpoint with a certificate of its
// own.
func issued(t *testing.T, a *bridgetest.Authority, url string, l bridgetest.Leaf) string {
	t.Helper()
	cert, key, _ := a.Files(t.TempDir(), l)
	return viaTLS(t, a, url, fmt.Sprintf(", cert: %q, key: %q", cert, key))
}

// Clients are who their certificates say, over each transport; without one they are
// nobody, where the listener lets them in at all.
func TestMTLS(t *testing.T) {
	path, a := secured(t, "tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem, client_auth: optional}\nauth: {mtls: {principal: spiffe}}\nservers: {notebook: {builtin: notebook}, open: {builtin: notebook, auth: none}}\n")
	s := serve(t, nil, "-c", path, "--listen", "127.0.0.1:0")
	url := s.Endpoints[0].URL
	alice := bridgetest.Leaf{URIs: []string{"spiffe://example.org/alice"}}
	for _, way := range []string{url, strings.Replace(url, "/mcp/", "/sse/", 1), "wss" + strings.TrimPrefix(url, "https")} {
		for _, tt := range []struct {
			name, file string
			allowed    bool
		}{
			{"a SPIFFE ID", issued(t, a, way, alice), true},
			{"no SPIFFE ID", issued(t, a, way, bridgetest.Leaf{}), false},
			{"no certificate", viaTLS(t, a, way, ""), false},
		} {
			if got := runCommand(t.Context(), nil, "call", "-c", tt.file, "far"); (got.code == 0) != tt.allowed {
				t.Errorf("%s with %s = %+v, want it allowed: %v", way, tt.name, got, tt.allowed)
			}
		}
	}
	if !strings.Contains(s.log.String(), "spiffe://example.org/alice") {
		t.Errorf("the log does not name the principal: %s", s.log)
	}
	if got := runCommand(t.Context(), nil, "call", "-c", viaTLS(t, a, s.Endpoints[1].URL, ""), "far"); got.code != 0 {
		t.Errorf("call of a server without authentication = %+v", got)
	}
}

// A certificate that expires ends the listen stream and the WebSocket that were opened
// with it.
func TestA03StreamsEndWithTheCertificate(t *testing.T) {
	t.Parallel() // it waits
	path, a := secured(t, "tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem}\nauth: {mtls: {principal: san}}\nservers: {notebook: {builtin: notebook}}\n")
	s := serve(t, nil, "-c", path)
	url := s.Endpoints[0].URL
	end := time.Now().Add(10 * time.Second).Truncate(time.Second) // by then both are open, on a busy machine too
	leaf := bridgetest.Leaf{NotAfter: end}

	d := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(a), Certificates: []tls.Certificate{a.Pair(leaf)}}, Subprotocols: []string{"mcp"}}
	ws, _, err := d.Dial("wss"+strings.TrimPrefix(url, "https"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	out := new(bridgetest.Log)
	p := process{args: []string{"mcpbridge", "listen", "-c", issued(t, a, url, leaf), "far", "--tools"}, stdout: out, stderr: out}
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	if err := p.run(ctx); ctx.Err() != nil || !strings.Contains(out.String(), "acknowledged") || time.Now().Before(end) {
		t.Errorf("listen = %v, %s; want it to end with the certificate", err, out)
	}
	_ = ws.SetReadDeadline(time.Now().Add(bridgetest.Patience))
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, 3000) {
		t.Errorf("the WebSocket ended with %v, want 3000", err)
	}
}

// A listener for clients with certificates rereads whose are valid.
func TestMTLSAuthorityIsReplaced(t *testing.T) {
	path, a := secured(t, "tls: {cert: cert.pem, key: key.pem, client_ca: clients.pem}\nauth: {mtls: {principal: san}}\nservers: {notebook: {builtin: notebook}}\n")
	clients := filepath.Join(filepath.Dir(path), "clients.pem")
	replaceAuthority := func(of *bridgetest.Authority) {
		t.Helper()
		if err := os.WriteFile(clients, of.PEM(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := bridgetest.NewAuthority(t, "next")
	replaceAuthority(a)
	s := serve(t, nil, "-c", path)
	old := issued(t, a, s.Endpoints[0].URL, bridgetest.Leaf{})
	if got := runCommand(t.Context(), nil, "call", "-c", old, "far"); got.code != 0 {
		t.Fatalf("call = %+v", got)
	}
	replaceAuthority(next)
	time.Sleep(1100 * time.Millisecond) // files are looked at once a second
	if got := runCommand(t.Context(), nil, "call", "-c", old, "far"); got.code == 0 {
		t.Error("a client of the removed authority is served")
	}
}
