package router

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// withTLS has a replica serve clients that show a certificate, and returns its URL.
func (r *replica) withTLS(t *testing.T, a *bridgetest.Authority) string {
	t.Helper()
	s := httptest.NewUnstartedServer(r.g)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Pair(bridgetest.Leaf{})}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: bridgetest.Pool(a)}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// A stream ends with the certificate of its client at whichever replica it is served, also if
// the client sends a header that looks like another credential.
func TestForwardCertificateExpires(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, func(o *Options) { o.Auth = auth.MTLS{} })
	authority := bridgetest.NewAuthority(t, "clients")
	end := time.Now().Add(6 * time.Second).Truncate(time.Second) // by then the stream is open, on a busy machine too
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(authority), Certificates: []tls.Certificate{authority.Pair(bridgetest.Leaf{NotAfter: end})}}}}
	t.Cleanup(client.CloseIdleConnections)
	send := func(url, method, body, session string) *http.Response {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), method, url+"/mcp/peer", strings.NewReader(body))
		req.Header = as("somebody", sessionHeaders(session))
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	session := send(all[0].withTLS(t, authority), http.MethodPost, initializeBody, "").Header.Get("Mcp-Session-Id")
	stream := send(all[1].withTLS(t, authority), http.MethodGet, "", session)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("GET = %d", stream.StatusCode)
	}
	ended := make(chan struct{})
	go func() { // ends with the stream
		defer close(ended)
		_, _ = io.Copy(io.Discard, stream.Body)
	}()
	select {
	case <-ended:
	case <-time.After(time.Until(end) + 3*time.Second):
		t.Error("the stream outlives the certificate of its client")
	}
}

// A session of a certificate is that of the certificate at each replica, and of no token that is
// sent over the same connection.
func TestForwardCertificateBesideTokens(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewTokens([]auth.StaticToken{{Name: "alice", Token: "token-of-alice"}})
	if err != nil {
		t.Fatal(err)
	}
	all := newReplicas(t, 2, func(o *Options) { o.Auth = auth.NewWays(auth.WaysOptions{Tokens: tokens, MTLS: &auth.MTLS{}}) })
	authority := bridgetest.NewAuthority(t, "clients")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(authority), Certificates: []tls.Certificate{authority.Pair(bridgetest.Leaf{})}}}}
	t.Cleanup(client.CloseIdleConnections)
	urls := []string{all[0].withTLS(t, authority), all[1].withTLS(t, authority)}
	send := func(url, body, session, token string) *http.Response {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp/peer", strings.NewReader(body))
		if req.Header = sessionHeaders(session); token != "" {
			req.Header = as(token, req.Header)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	ofCert := send(urls[0], initializeBody, "", "").Header.Get("Mcp-Session-Id")
	ofAlice := send(urls[0], initializeBody, "", "token-of-alice").Header.Get("Mcp-Session-Id")
	for i, url := range urls {
		for _, tt := range []struct {
			session, token string
			want           int
		}{
			{ofCert, "", 200}, {ofCert, "token-of-alice", 404}, {ofCert, "invented", 401},
			{ofAlice, "token-of-alice", 200}, {ofAlice, "", 404}, {ofAlice, "invented", 401},
		} {
			if got := send(url, listTools, tt.session, tt.token).StatusCode; got != tt.want {
				t.Errorf("at replica %d session of the certificate: %v, token %q = %d, want %d", i, tt.session == ofCert, tt.token, got, tt.want)
			}
		}
	}
}

// What a client names in Connection is not lost on the way: a request does the same wherever it
// arrives, and nobody can hide what a proxy has added.
func TestForwardConnectionHeader(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, withTokens)
	session := all[0].openAs(t, "alice")
	for _, named := range []string{"Mcp-Session-Id", "Authorization", "Content-Type", "Accept, MCP-Protocol-Version", "close, Mcpbridge-Peer", "Content-Length, Transfer-Encoding"} {
		for i, r := range all {
			text := fmt.Sprintf("POST /mcp/peer HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nAuthorization: Bearer alice\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", named, session, len(listTools), listTools)
			if got := sendRaw(t, r.Listener.Addr().String(), text); got != http.StatusOK {
				t.Errorf("Connection: %s at replica %d = %d, want 200", named, i, got)
			}
		}
	}
}

// Two lengths, or a length and chunks, are no second request at the holder.
func TestForwardSmuggledRequest(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	mine, other := all[0].initialize(t), all[0].initialize(t)
	hidden := "DELETE /mcp/peer HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: " + other + "\r\n\r\n"
	head := "POST /mcp/peer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: " + mine + "\r\n"
	for name, text := range map[string]string{
		"chunks and a length":    head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(listTools)+len(hidden), len(listTools), listTools) + hidden,
		"a trailer":              head + fmt.Sprintf("Transfer-Encoding: chunked\r\nTrailer: Mcp-Session-Id\r\n\r\n%x\r\n%s\r\n0\r\nMcp-Session-Id: %s\r\n\r\n", len(listTools), listTools, other),
		"a session of two lines": strings.Replace(head, mine, mine+"\r\n Mcp-Session-Id: "+other, 1) + "Content-Length: 0\r\n\r\n",
		"an obsolete coding":     head + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + hidden,
	} {
		_ = sendRaw(t, all[1].Listener.Addr().String(), text)
		if got := all[0].send(t, http.MethodPost, listTools, sessionHeaders(other)); got.status != http.StatusOK {
			t.Errorf("%s: the session of another = %+v, want it untouched", name, got)
		}
	}
}

// A replica with another key, or a clock that is far off, is told from one that died within a
// request: nothing was done, and the log says what to compare.
func TestForwardRefused(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	session := all[0].initialize(t)
	if err := all[1].peers.Replace("another key of replicas"); err != nil {
		t.Fatal(err)
	}
	got := all[1].send(t, http.MethodPost, listTools, sessionHeaders(session))
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "effect") {
		t.Errorf("= %+v, want 503: nothing was done", got)
	}
	if text := all[1].logs.String(); !strings.Contains(text, "compare replicas.keys") || strings.Contains(text, "has ended") {
		t.Errorf("the log: %s", text)
	}
	if text := all[0].logs.String(); !strings.Contains(text, "not signed with a key of this replica") {
		t.Errorf("the log of the other: %s", text)
	}
	if err := all[1].peers.Replace(replicaKey); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { // it is asked again once a second
		return all[1].send(t, http.MethodPost, listTools, sessionHeaders(session)).status == http.StatusOK
	})
}

// A replica of another configuration does not tell a client of one server which others it has.
func TestForwardToOtherConfiguration(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, withTokens)
	session := all[0].openAs(t, "alice")
	other := all[0].g.opts.Servers[0]
	other.Name = "finance"
	if err := all[0].g.Reload(Options{StateKeys: []string{replicaKey}, Peers: all[0].peers, Auth: byBearer, Servers: []ServerOptions{other}}); err != nil {
		t.Fatal(err)
	}
	got := all[1].send(t, http.MethodPost, listTools, as("alice", sessionHeaders(session)))
	if got.status != http.StatusNotFound || strings.Contains(got.body, "finance") || !strings.Contains(got.body, "initialize anew") {
		t.Errorf("= %+v, want 404 and no name of another server", got)
	}
}

// Calls of a profile whose replica has another configuration by now are served by the others.
func TestForwardToOtherConfigurationPlaced(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	holder := int(d.onlyServer(t, "before", nil)[0] - '0')
	a := d.all[holder]
	other := a.g.opts.Servers[0]
	other.Name = "finance"
	if err := a.g.Reload(Options{StateKeys: []string{replicaKey}, Peers: a.peers, Servers: []ServerOptions{other}}); err != nil {
		t.Fatal(err)
	}
	got := d.all[1-holder].send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"t","arguments":{}`), modernHeaders("tools/call", "t"))
	if by := served(t, got); by != fmt.Sprint(1-holder) {
		t.Errorf("served by %q, want %d", by, 1-holder)
	}
}
