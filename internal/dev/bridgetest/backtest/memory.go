package backtest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// InMemory serves h in memory until the test ends, and returns what reaches it: the HTTP
// client that backs have.
func InMemory(t testing.TB, h http.Handler) (*httptest.Server, http.RoundTripper) {
	l := bridgetest.Listen()
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	settings := transport.NewHTTP(time.Minute, nil)
	settings.DialContext = l.DialContext
	rt := http1.NewTransport(settings)
	t.Cleanup(func() {
		rt.CloseIdleConnections()
		server.CloseClientConnections() // of streams that nobody reads any more
		server.Close()
	})
	return server, rt
}
