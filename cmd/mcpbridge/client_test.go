package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A script is a modern server on the wire, by what it answers to server/discover. It
// answers each other method with the bytes it is given.
type script struct {
	answers map[string]string // method to body; SSE if it begins with "data:" or ":"
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if m, _ := wire.Parse(body, wire.Options{}); m.Method == spec.MethodDiscover {
		backtest.Reply(w, http.StatusOK, "", backtest.SaysModern, m.ID)
		return
	}
	answer := s.answers[r.Header.Get("Mcp-Method")]
	typ := "application/json"
	switch {
	case strings.HasPrefix(answer, "data:"):
		typ = "text/event-stream"
	case !strings.HasPrefix(answer, "{"):
		typ = "text/plain"
	}
	w.Header().Set("Content-Type", typ)
	_, _ = io.WriteString(w, answer)
}

func (s *script) start(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestCallUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	got := runCommand(t.Context(), nil, "call", srv.URL, "x")
	if !strings.HasPrefix(got.err, "mcpbridge: "+srv.URL+" can't be reached: ") || !strings.Contains(got.err, "nothing listens there") {
		t.Errorf("call = %q, want an error that names the endpoint and the next step", got.err)
	}
}

// What prevents the connection has a next step of its own.
func TestCallUntrusted(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	got := runCommand(t.Context(), nil, "call", srv.URL, "x")
	if !strings.HasPrefix(got.err, "mcpbridge: "+srv.URL+" can't be reached: ") || !strings.Contains(got.err, "SSL_CERT_FILE") {
		t.Errorf("call = %q, want it to say how the certificate is trusted", got.err)
	}
}

const ack = `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://todo"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}` + "\n\n"

// A stream that breaks off has a code of its own, and a step.
func TestListenLost(t *testing.T) {
	url := (&script{answers: map[string]string{"subscriptions/listen": ack}}).start(t)
	got := runCommand(t.Context(), nil, "listen", url, "--id", "7", "--tools")
	if want := "mcpbridge: " + url + ": the connection was lost; listen again, and read again what you follow\n"; got.code != exitLost || got.err != want {
		t.Errorf("listen = %d, %q, want %d, %q", got.code, got.err, exitLost, want)
	}
}
