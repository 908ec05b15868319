package httpserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// One listener serves clients with TLS and without, and requests know which they are.
func TestPlaintextBesideTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := startOn(t, l, 0, func(o *Options) {
		o.Plaintext = true
		o.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s TLS=%v", r.Proto, r.TLS != nil && r.TLS.HandshakeComplete)
		})
	})
	silent := r.dial(t, 1)[0]
	for range 3 { // on connections that stay, and on new ones
		if got, err := r.get(r.client(t, nil)); err != nil || got != "HTTP/1.1 TLS=true" {
			t.Errorf("over TLS: %q, %v", got, err)
		}
		resp, err := r.client(t, nil).Get("http://" + r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "HTTP/1.1 TLS=false" {
			t.Errorf("without TLS: %q, %v", got, err)
		}
		_ = resp.Body.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	begun := time.Now()
	if err := r.Shutdown(ctx); err != nil || time.Since(begun) > bridgetest.Patience/2 {
		t.Errorf("Shutdown = %v after %v", err, time.Since(begun))
	}
	if !closed(silent) {
		t.Error("a connection that says nothing is open after the end")
	}
}
