package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// The help of the commands that show what passes, as it stands in testdata.
func TestConsoleHelp(t *testing.T) {
	for _, name := range []string{"tail", "top"} {
		want, err := os.ReadFile(filepath.Join("testdata", "help", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got := runCommand(t.Context(), nil, name, "--help"); got.out != string(want) {
			t.Errorf("mcpbridge %s --help has changed:\n%s", name, got.out)
		}
	}
}

const consoleToken = "the-admin-token-of-this"

// tail prints the calls that pass, top what there is, and neither anything without the token.
func TestConsole(t *testing.T) {
	s := serve(t, []string{"MCPBRIDGE_ADMIN_TOKEN=" + consoleToken})
	admin := []string{"--admin", strings.TrimPrefix(s.Admin, "http://")}
	if got := runCommand(t.Context(), nil, append([]string{"top"}, admin...)...); got.code != 1 || !strings.Contains(got.err, "MCPBRIDGE_ADMIN_TOKEN") {
		t.Errorf("top without the token = %d, %s%s", got.code, got.out, got.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bridgetest.Log
	p := process{args: append([]string{"mcpbridge", "tail", "--filter", "edit_note", "--token", consoleToken}, admin...), stdout: &out, stderr: &errs}
	ended := make(chan error)
	go func() { ended <- p.run(ctx) }()
	url := s.Endpoints[0].URL
	for end := time.Now().Add(bridgetest.Patience); !strings.Contains(out.String(), "tools/call  edit_note  ok"); {
		if runCommand(t.Context(), nil, "call", url, "edit_note", "name=todo", "text=x"); time.Now().After(end) {
			t.Fatalf("tail printed %s%s", out.String(), errs.String())
		}
	}
	if strings.Contains(out.String(), "tools/list") {
		t.Errorf("tail printed more than the filter says: %s", out.String())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("tail ended with %v", err)
	}
	busy := regexp.MustCompile(`(?m)^notebook +ready +(legacy|modern) +([1-9][0-9]*\.?[0-9]*|0\.[1-9]) `)
	var got ran
	for end := time.Now().Add(bridgetest.Patience); !busy.MatchString(got.out) && time.Now().Before(end); { // on a busy machine no call may end between its two samples
		shown := make(chan ran)
		go func() { // ends with the command
			shown <- runCommand(t.Context(), []string{"MCPBRIDGE_ADMIN_TOKEN=" + consoleToken}, append([]string{"top"}, admin...)...)
		}()
		if got = whileCalling(t, url, shown); got.code != 0 {
			break
		}
	}
	if got.code != 0 || !busy.MatchString(got.out) {
		t.Errorf("top = %d, %s%s", got.code, got.out, got.err)
	}
	for _, args := range [][]string{{"top", "--admin", "ftp://x"}, {"top", "--every", "1ms"}, {"tail", "x"}} {
		if got := runCommand(t.Context(), nil, args...); got.code != exitUsage {
			t.Errorf("%q = %d, %s", args, got.code, got.err)
		}
	}
}

// whileCalling calls a tool until a command has ended.
func whileCalling(t *testing.T, url string, ended <-chan ran) ran {
	for {
		select {
		case got := <-ended:
			return got
		default:
			runCommand(t.Context(), nil, "call", url, "edit_note", "name=todo", "text=x")
		}
	}
}

// A web page whose name was rebound to this machine gets nothing of the admin page, with a
// token or without.
func TestHardeningReboundAdminPage(t *testing.T) {
	for _, environ := range [][]string{nil, {"MCPBRIDGE_ADMIN_TOKEN=" + consoleToken}} {
		s := serve(t, environ)
		for _, path := range []string{"/", "/login", "/assets/login.js", "/api/state", "/api/live", "/debug/pprof/", "/metrics"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Admin+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "rebound.example:2527"
			req.Header.Set("Authorization", "Bearer "+consoleToken)
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s as rebound.example = %s, want 403", path, res.Status)
			}
		}
	}
}
