package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// wantAdvice judges a server, and wants no verdict, what is wrong, and what to do.
func wantAdvice(t *testing.T, s *Server, trouble, advice string) {
	t.Helper()
	v, err := s.Judge(t.Context())
	if got := s.Trouble(&v); err != nil || v.Era != spec.Unknown || got != trouble {
		t.Errorf("Judge = %v, %q, %v, trouble %q, want none and %q", v.Era, v.Reason, err, got, trouble)
	}
	if got := s.Advice(&v); !strings.Contains(got, advice) {
		t.Errorf("Advice = %q, want %q in it", got, advice)
	}
}

func TestAdviceOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name            string
		server          *backtest.OddServer
		trouble, advice string
	}{
		{"401", &backtest.OddServer{Status: 401, Kind: "text/plain"}, "wants credentials", "give it credentials: --header"},
		{"403", &backtest.OddServer{Status: 403, Kind: "text/plain"}, "refuses access", "do the credentials allow it?"},
		{"407", &backtest.OddServer{Status: 407, Kind: "text/plain"}, "is behind a proxy that wants credentials", "the proxy requires credentials"},
		{"429", &backtest.OddServer{Status: 429, Kind: "text/plain"}, "is busy", "try again later"},
		{"403 with its reason", &backtest.OddServer{Status: 403, Kind: "text/plain", Body: "ada is not in the group\n"}, "refuses access", "do the credentials allow it?"},
		{"503", &backtest.OddServer{Status: 503, Kind: "text/plain"}, "answers with errors", "read its log"},
		{"307", &backtest.OddServer{Status: 307, Kind: "text/plain"}, "redirects to another URL", ""},
		{"404", &backtest.OddServer{Status: 404, Kind: "text/html"}, "is not an MCP server", "is the path right?"},
		{"400", &backtest.OddServer{Status: 400, Kind: "text/plain", Body: "Client sent an HTTP request to an HTTPS server."}, "is not an MCP server", "plain http:// correct?"},
		{"silence", &backtest.OddServer{Silent: true}, "does not answer", "--timeout 1m"},
		{"hangs up", &backtest.OddServer{Cut: true}, "closes the connection", "does it need https://?"},
		{"200 with HTML", &backtest.OddServer{Kind: "text/html"}, "is not an MCP server", "is it an MCP server, and the path of its URL right?"},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) { wantAdvice(t, overHTTP(t, tt.server), tt.trouble, tt.advice) })
	}
	t.Run("nobody", func(t *testing.T) {
		wantAdvice(t, New(options(nobodyURL)), "can't be reached", "nothing listens there")
	})
}

// The same over a WebSocket, where there is one question alone.
func TestAdviceOverWebSocket(t *testing.T) {
	for _, tt := range []struct {
		status          int
		trouble, advice string
	}{
		{401, "wants credentials", "give it credentials: --header"},
		{403, "refuses access", "do the credentials allow it?"},
		{404, "is not an MCP server", "is the path right?"},
		{429, "is busy", "try again later"},
		{502, "answers with errors", "read its log"},
		{200, "is not an MCP server", "use a URL with http://"},
	} {
		t.Run(http.StatusText(tt.status), func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte("a page with secrets"))
			}))
			defer srv.Close()
			s := New(options("ws" + strings.TrimPrefix(srv.URL, "http")))
			wantAdvice(t, s, tt.trouble, tt.advice)
			f := s.Find(t.Context(), spec.Unknown)
			if !strings.Contains(f.Why, "secrets") || strings.Contains(f.Public, "secrets") {
				t.Errorf("finding %q, for clients %q, want the page in the log alone", f.Why, f.Public)
			}
		})
	}
}

func TestAdviceOnCommands(t *testing.T) {
	for _, tt := range []struct {
		name            string
		play            play
		trouble, advice string
	}{
		{"silence", script(""), "does not answer", "does the command run, and speak MCP"},
		{"reads nothing", script("hang"), "does not answer", "does the command run, and speak MCP"},
		{"crashes", script("quit"), "does not keep running", "does the command run, and speak MCP"},
		{"ends", func(*process) error { return nil }, "is not an MCP server", "does the command run, and speak MCP"},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			s, _ := byCommand(t, options(""), tt.play)
			if tt.name != "silence" {
				wantAdvice(t, s, tt.trouble, tt.advice)
				return
			}
			v, err := s.Initialize(t.Context(), connect, mcp.Probing{}) // to discovery silence is an answer
			if got := s.Trouble(&v); err != nil || got != tt.trouble || !strings.Contains(s.Advice(&v), tt.advice) {
				t.Errorf("Initialize = %+v, %v, trouble %q, want %q", v, err, got, tt.trouble)
			}
		})
	}
	for _, tt := range []struct{ program, dir, advice string }{
		{"./no-such-command", "", "give the path of a program"},
		{"mcpbridge-no-such-command", "", "give the path of a program"},
		{"~/bin/no-such-command", "", "write ${HOME}/bin/no-such-command"},
		{"npx -y foo", "", "command: npx, args: [-y, foo]"},
		{os.Args[0], t.TempDir() + "/none", "correct the server's cwd"},
		{os.Args[0], os.Args[0], "correct the server's cwd"},
	} {
		o := options("")
		o.Command.Argv, o.Command.Dir = []string{tt.program}, tt.dir
		wantAdvice(t, New(o), "can't start", tt.advice)
	}
}

// Clients are not told what a command has printed, nor where a redirect leads.
func TestFindingsForClients(t *testing.T) {
	s := New(options("https://docs.example.com/mcp"))
	moved := &upstream.StatusError{Code: http.StatusFound, Target: "https://inner.example.com/login"}
	for _, v := range []mcp.Verdict{
		{Starting: true, Reason: notRead + `; it wrote "inner" to its standard output`},
		{Status: moved.Code, Cause: moved, Reason: "it answered with " + moved.Error() + moved.Advice()},
	} {
		if f := s.finding(&v); !strings.Contains(f.Why, "inner") || strings.Contains(f.Public, "inner") || !strings.HasSuffix(f.Public, moreInLog) {
			t.Errorf("finding %q, for clients %q", f.Why, f.Public)
		}
	}
}

// What is wrong with a login is told by whoever knows of it.
func TestAdviceOnCredentials(t *testing.T) {
	s := New(options("https://docs.example.com/mcp"))
	v := mcp.Verdict{Cause: &upstream.CredentialError{Err: errors.New("expired"), Step: "log in: mcpbridge login docs"}}
	if got := s.Trouble(&v) + "; " + s.Advice(&v); got != "wants credentials; log in: mcpbridge login docs" {
		t.Errorf("advice = %q", got)
	}
}
