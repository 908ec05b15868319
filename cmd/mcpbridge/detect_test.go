package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/server"
)

// nobodyURL is where nobody listens. A port that was free a moment ago may be taken by
// what is tested.
const nobodyURL = "http://127.0.0.1:1/mcp"

// newServer returns the server at a URL as serve makes it.
func newServer(t *testing.T, url string) *server.Server {
	t.Helper()
	c, _, err := loadConfig(config.Options{Servers: []config.Server{{Name: "odd", URL: url}}})
	if err != nil {
		t.Fatal(err)
	}
	servers, err := hook.Servers(newOptions(c, false, process{environ: os.Environ()}, slog.New(slog.DiscardHandler), nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers[0].Close)
	return servers[0]
}

// A command that takes its first request for what all others will be, and was asked what
// it is, is started anew for whoever it serves.
func TestU02PinnedCommandIsServed(t *testing.T) {
	s := serve(t, os.Environ(), "--", os.Args[0], "pinned")
	got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "--json")
	if got.code != 0 || got.out != "[]\n" {
		t.Errorf("call = %+v, want the empty list of tools; serve logged %s", got, s.log)
	}
}

// A server at a URL that fails at what it does not know is served all the same.
func TestU01FailingURLIsServed(t *testing.T) {
	odd := &backtest.OddServer{Status: 500, Kind: "text/html", Body: "<h1>oops</h1>", Greets: true}
	s := serve(t, nil, odd.Start(t))
	got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "--json")
	if got.code != 0 || got.out != "[]\n" {
		t.Errorf("call = %+v, want the empty list of tools; serve logged %s", got, s.log)
	}
}

// Whatever era the server is taken for, who calls it hears what to do about the usual
// mistakes.
func TestErrorsNameTheNextStep(t *testing.T) {
	page := (&backtest.OddServer{Kind: "text/html", Body: "<h1>It works</h1>"}).Start(t)
	missing := (&backtest.OddServer{Status: 404, Kind: "text/html", Body: "<h1>Not Found</h1>"}).Start(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	slash := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/mcp/?key=secret", http.StatusTemporaryRedirect)
	}))
	defer slash.Close()
	for _, tt := range []struct{ name, url, want string }{
		{"a slash too few", slash.URL + "/mcp", "HTTP 307 Temporary Redirect; redirects are not followed: put a / at the end of its URL"},
		{"a page", page, "is it an MCP server, and the path of its URL right?"},
		{"a wrong path", missing, "check the path of its URL"},
		{"a certificate of nobody's", secure.URL, "SSL_CERT_FILE"},
		{"nobody", nobodyURL, "nothing listens there"},
	} {
		for _, era := range []string{"auto", "legacy", "modern"} {
			t.Run(tt.name+" as "+era, func(t *testing.T) {
				s := serve(t, []string{"MCPBRIDGE_SERVERS__ODD__URL=" + tt.url, "MCPBRIDGE_SERVERS__ODD__ERA=" + era})
				got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL)
				if got.code != exitFailure || !strings.Contains(got.err, `server "odd" `) || !strings.Contains(got.err, tt.want) {
					t.Errorf("call = %d, %q, want it to name the server and say %q", got.code, got.err, tt.want)
				}
			})
		}
	}
}
