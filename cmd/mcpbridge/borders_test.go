package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// secured writes a configuration with tls, and returns it with the authority.
func secured(t *testing.T, more string) (path string, a *bridgetest.Authority) {
	t.Helper()
	a = bridgetest.NewAuthority(t, "authority")
	dir := filepath.Join(t.TempDir(), "my files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.Files(dir, bridgetest.Leaf{})
	path = filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(path, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, a
}

const securely = "tls: {cert: cert.pem, key: key.pem}\nservers: {notebook: {builtin: notebook}}\n"

// viaTLS writes the configuration of clients of an endpoint.
func viaTLS(t *testing.T, a *bridgetest.Authority, url, more string) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, a.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return configFile(t, fmt.Sprintf("servers: {far: {url: %q, tls: {ca: %q%s}}}\n", url, ca, more))
}

// A server over TLS is reached by each transport of mcpbridge itself, and calls, listens
// and streams behave as without.
func TestServeTLS(t *testing.T) {
	path, a := secured(t, securely)
	s := serve(t, nil, "-c", path)
	url := s.Endpoints[0].URL
	if !strings.HasPrefix(url, "https://127.0.0.1:") || !strings.HasPrefix(s.Admin, "http://127.0.0.1:") {
		t.Fatalf("announced %+v", s.Announcement)
	}
	for _, way := range []string{url, strings.Replace(url, "/mcp/", "/sse/", 1), "wss" + strings.TrimPrefix(url, "https")} {
		file := viaTLS(t, a, way, "")
		if got := runCommand(t.Context(), nil, "call", "-c", file, "far", "edit_note", "name=todo", "text=x"); got.out != "saved\n" {
			t.Errorf("call over %s = %+v", way, got)
		}
		between := serve(t, nil, "-c", file)
		if got := runCommand(t.Context(), nil, "read", between.Endpoints[0].URL, "note://todo"); got.code != 0 || got.out == "" {
			t.Errorf("read through a second mcpbridge over %s = %+v", way, got)
		}
	}
	if got := runCommand(t.Context(), nil, "call", url); got.code != exitFailure || !strings.Contains(got.err, "tls.ca") {
		t.Errorf("call without the authority = %+v, want the next step", got)
	}
}

// HTTP/2 is served as HTTP/1.1 is, and a shutdown ends its streams in order.
func TestServeHTTP2(t *testing.T) {
	path, a := secured(t, securely)
	s := serve(t, nil, "-c", path)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(a)}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest(http.MethodPost, s.Endpoints[0].URL, strings.NewReader(listen))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(k, v)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Fatalf("listen = %v, %v", resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var first []byte
	for chunk := make([]byte, 4096); !strings.Contains(string(first), "acknowledged"); {
		n, err := resp.Body.Read(chunk)
		if first = append(first, chunk[:n]...); err != nil {
			t.Fatalf("the stream begins with %q, %v", first, err)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("serve = %d; it logged %s", code, s.log)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), `"resultType":"complete"`) {
		t.Errorf("the stream ends with %q, %v, want its result", rest, err)
	}
}

// Without the client's certificate there is no handshake, nor a WebSocket's.
func TestServeClientCertificates(t *testing.T) {
	path, a := secured(t, "tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem}\nservers: {notebook: {builtin: notebook}}\n")
	s := serve(t, nil, "-c", path)
	dir := t.TempDir()
	cert, key, _ := a.Files(dir, bridgetest.Leaf{})
	otherCert, otherKey, _ := bridgetest.NewAuthority(t, "authority").Files(t.TempDir(), bridgetest.Leaf{})
	url := s.Endpoints[0].URL
	for _, way := range []string{url, strings.Replace(url, "/mcp/", "/sse/", 1), "wss" + strings.TrimPrefix(url, "https")} {
		for _, tt := range []struct {
			name, more string
			allowed    bool
		}{
			{"its own", fmt.Sprintf(", cert: %q, key: %q", cert, key), true},
			{"none", "", false},
			{"of another authority", fmt.Sprintf(", cert: %q, key: %q", otherCert, otherKey), false},
		} {
			file := viaTLS(t, a, way, tt.more)
			got := runCommand(t.Context(), nil, "call", "-c", file, "far")
			if (got.code == 0) != tt.allowed {
				t.Errorf("%s with certificate %s = %+v, want it allowed: %v", way, tt.name, got, tt.allowed)
			}
		}
	}
}

// A server is known by server_name where its certificate is of another name than its URL.
func TestUpstreamServerName(t *testing.T) {
	a := bridgetest.NewAuthority(t, "authority")
	book := notebook.New(notebook.Options{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := transport.AcceptWebSocket(w, r, transport.AcceptOptions{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_ = book.Serve(context.WithoutCancel(r.Context()), c) // until its client leaves
		_ = c.Close()
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // one handshake fails
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{a.Pair(bridgetest.Leaf{Names: []string{"mcp.internal.example"}})}}
	srv.StartTLS()
	defer srv.Close()
	url := "wss" + strings.TrimPrefix(srv.URL, "https")
	if got := runCommand(t.Context(), nil, "call", "-c", viaTLS(t, a, url, ""), "far"); got.code == 0 || !strings.Contains(got.err, "name that its certificate is for") {
		t.Errorf("call = %+v, want the name refused", got)
	}
	if got := runCommand(t.Context(), nil, "call", "-c", viaTLS(t, a, url, ", server_name: mcp.internal.example"), "far"); got.code != 0 {
		t.Errorf("call with server_name = %+v", got)
	}
}

// The admin address asks for its token, and its socket for the user.
func TestServeAdminBorders(t *testing.T) {
	path := configFile(t, "admin_token: ${ADMIN_TOKEN}\nservers: {notebook: {builtin: notebook}}\n")
	s := serve(t, []string{"ADMIN_TOKEN=0123456789abcdef"}, "-c", path)
	if code, body := get(t, s.Admin+"/metrics"); code != 401 || strings.Contains(body, "0123456789abcdef") {
		t.Errorf("/metrics = %d %s, want 401", code, body)
	}
	req, _ := http.NewRequest(http.MethodGet, s.Admin+"/metrics", nil)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("/metrics with the token = %d", resp.StatusCode)
	}

	socket := filepath.Join(t.TempDir(), "a.sock")
	at := serve(t, nil, "-c", configFile(t, "servers: {notebook: {builtin: notebook}}\n"), "--admin", "unix:"+socket)
	if at.Admin != "unix:"+socket {
		t.Errorf("announced %q", at.Admin)
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	resp, err = (&http.Client{Transport: tr}).Get("http://localhost/healthz")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET = %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if at.stop(); exists(socket) {
		t.Error("the socket is still there")
	}
}

// Beyond this machine the token of the admin address passes over TLS, without a client
// certificate.
func TestServeAdminTLS(t *testing.T) {
	path, a := secured(t, "admin_token: 0123456789abcdef\ntls: {cert: cert.pem, key: key.pem, client_ca: ca.pem}\nservers: {notebook: {builtin: notebook}}\n")
	s := serve(t, nil, "-c", path, "--admin", "0.0.0.0:0")
	if !strings.HasPrefix(s.Admin, "https://127.0.0.1:") {
		t.Fatalf("announced %q", s.Admin)
	}
	req, _ := http.NewRequest(http.MethodGet, s.Admin+"/metrics", nil)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	resp, err := http2Client(t, a).Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET = %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if resp, err := http.Get("http" + strings.TrimPrefix(s.Admin, "https") + "/metrics"); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("GET without TLS = %d", resp.StatusCode)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A WebSocket and a stream that were taken over from net/http end with the process, over
// TLS too, and a browser's reserve of connections does not hold it up.
func TestServeTLSDrains(t *testing.T) {
	path, a := secured(t, securely)
	s := serve(t, nil, "-c", path)
	conf := &tls.Config{RootCAs: bridgetest.Pool(a)}
	d := websocket.Dialer{TLSClientConfig: conf, Subprotocols: []string{"mcp"}}
	ws, _, err := d.Dial("wss"+strings.TrimPrefix(s.Endpoints[0].URL, "https"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	host := strings.TrimPrefix(strings.Split(s.Endpoints[0].URL, "/mcp/")[0], "https://")
	for range 3 {
		c, err := tls.Dial("tcp", host, conf)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	begun := time.Now()
	if code := s.stop(); code != 0 {
		t.Errorf("serve = %d; it logged %s", code, s.log)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("the shutdown took %v", took)
	}
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the WebSocket ended with %v, want 1001", err)
	}
}
