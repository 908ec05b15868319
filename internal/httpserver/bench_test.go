package httpserver

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// BenchmarkTLS compares a Server, whose certificates are reread, with net/http's own,
// which has one: by requests on a connection that stays, and by connections.
func BenchmarkTLS(b *testing.B) {
	a := bridgetest.NewAuthority(b, "authority")
	cert, key, ca := a.Files(b.TempDir(), bridgetest.Leaf{})
	pair := a.Pair(bridgetest.Leaf{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })
	for _, of := range []struct {
		name  string
		serve func(b *testing.B, l net.Listener) (stop func())
		shown []tls.Certificate
	}{
		{"net-http", func(b *testing.B, l net.Listener) func() {
			s := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
			go func() { _ = s.ServeTLS(l, "", "") }() // until stop
			return func() { _ = s.Close() }
		}, nil},
		{"ours", func(b *testing.B, l net.Listener) func() {
			return serveFiles(b, l, certs.Files{Cert: cert, Key: key}, h)
		}, nil},
		{"net-http-mutual", func(b *testing.B, l net.Listener) func() {
			s := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: bridgetest.Pool(a), ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true}}
			go func() { _ = s.ServeTLS(l, "", "") }() // until stop
			return func() { _ = s.Close() }
		}, []tls.Certificate{pair}},
		{"ours-mutual", func(b *testing.B, l net.Listener) func() {
			return serveFiles(b, l, certs.Files{Cert: cert, Key: key, CA: ca}, h)
		}, []tls.Certificate{pair}},
	} {
		for _, way := range []struct {
			name   string
			change func(*http.Transport)
		}{
			{"request-http1", func(tr *http.Transport) { tr.ForceAttemptHTTP2 = false }},
			{"request-http2", func(*http.Transport) {}},
			{"connection", func(tr *http.Transport) { tr.DisableKeepAlives, tr.ForceAttemptHTTP2 = true, false }},
		} {
			b.Run(way.name+"/"+of.name, func(b *testing.B) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				defer of.serve(b, l)()
				tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(a), Certificates: of.shown}, ForceAttemptHTTP2: true}
				way.change(tr)
				defer tr.CloseIdleConnections()
				c := &http.Client{Transport: tr}
				b.ReportAllocs()
				for b.Loop() {
					resp, err := c.Get("https://" + l.Addr().String())
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
	}
}

func serveFiles(b *testing.B, l net.Listener, f certs.Files, h http.Handler) (stop func()) {
	b.Helper()
	store, err := certs.Open(f, nil)
	if err != nil {
		b.Fatal(err)
	}
	s := New(l, Options{Handler: store.Guard(h), Logger: slog.New(slog.DiscardHandler), TLS: store.Server(true)})
	s.Start()
	return func() { _ = s.Shutdown(context.Background()) }
}
