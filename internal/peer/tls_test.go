package peer

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// serveTLS serves what was forwarded to a replica, over TLS with a certificate of httptest.
func serveTLS(t *testing.T, got *atomic.Int64) (*httptest.Server, replicas.Replica) {
	t.Helper()
	var g *Group
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Add(1)
		e, err := g.Open(r)
		if err != nil {
			Refuse(w, err)
			return
		}
		if r.URL.Path == HelloPath {
			g.ServeHello(w, r, e)
			return
		}
		_, _ = w.Write([]byte("served to " + r.Header.Get("Authorization")))
	}))
	at := replicas.Replica{Instance: holder.Instance, Addr: s.Listener.Addr().String()}
	g = newGroup(t, at, testKey)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, at
}

func overTLS(t *testing.T, roots *x509.CertPool) *Group {
	t.Helper()
	g, err := New(Options{Engine: replicastest.Alone(edge), Keys: []string{testKey}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DialTimeout: bridgetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func forwardTo(g *Group, to replicas.Replica) (string, error) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/mcp/files", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer secret")
	err := g.Forward(w, r, Forward{To: to, Path: "/mcp/files", WriteTimeout: time.Second})
	return w.Body.String(), err
}

func TestForwardOverTLS(t *testing.T) {
	var got atomic.Int64
	s, at := serveTLS(t, &got)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	g := overTLS(t, roots)
	for range 3 { // the first one by net/http's transport, which asks for HTTP/2, the others not
		if text, err := forwardTo(g, at); err != nil || text != "served to Bearer secret" {
			t.Fatalf("= %q, %v", text, err)
		}
	}
}

// Whoever has got the address of a replica, but no certificate of its authority, sees neither
// requests nor credentials.
func TestForwardToImpostor(t *testing.T) {
	var got atomic.Int64
	_, at := serveTLS(t, &got)
	if text, err := forwardTo(overTLS(t, x509.NewCertPool()), at); err == nil || text != "" || got.Load() != 0 {
		t.Errorf("= %q, %v, and the impostor got %d requests", text, err, got.Load())
	}
}
