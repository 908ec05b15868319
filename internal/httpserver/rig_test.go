package httpserver

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// A rig is a server over TLS on a real socket, which answers with the protocol.
type rig struct {
	*Server
	authority *bridgetest.Authority
	cert, key string
	log       bridgetest.Log
	counts    bridgetest.Counts
}

func start(t *testing.T, maxNew int64) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := startOn(t, l, maxNew)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bridgetest.Patience)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
	return r
}

func startOn(t *testing.T, l net.Listener, maxNew int64, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{authority: bridgetest.NewAuthority(t, "authority")}
	r.cert, r.key, _ = r.authority.Files(t.TempDir(), bridgetest.Leaf{})
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	store, err := certs.Open(certs.Files{Cert: r.cert, Key: r.key}, log)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
		Logger:  log, TLS: store.Server(false), MaxNew: maxNew,
		Reached: func(l *limits.Limit) { r.counts.Add(l.Key) },
	}
	for _, f := range change {
		f(&o)
	}
	r.Server = New(l, o)
	r.Start()
	return r
}

// client returns a client that trusts the rig, and closes its connections with the test.
func (r *rig) client(t *testing.T, change func(*http.Transport)) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(r.authority)}, ForceAttemptHTTP2: true}
	if change != nil {
		change(tr)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: bridgetest.Patience}
}

func (r *rig) get(c *http.Client) (string, error) {
	resp, err := c.Get("https://" + r.Addr().String())
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// dial opens connections that say nothing.
func (r *rig) dial(t *testing.T, n int) []net.Conn {
	t.Helper()
	var all []net.Conn
	for range n {
		c, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}

// closed reports whether the other side of c has hung up.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	ne, ok := err.(net.Error)
	return err != nil && !(ok && ne.Timeout())
}
