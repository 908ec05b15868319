package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
)

// answerFiles are what stands in the folder in which mistakes are made.
var answerFiles = map[string]string{
	"cwd.yaml":    "servers:\n  files: {command: sh, cwd: /no/such/folder}\n",
	"home.yaml":   "servers:\n  files: {command: ~/bin/nosuch}\n",
	"words.yaml":  "servers:\n  files: {command: \"npx -y foo\"}\n",
	"scope.yaml":  "servers:\n  files:\n    command: npx\n    args: [-y, @scope/pkg]\n",
	"indent.yaml": "servers:\n  files:\n    command: npx\n   args: [-y]\n",
	"two.yaml":    "servers:\n  notes: {builtin: notebook}\n",
	"npm.sh":      "i=0; echo 'npm error code E404' >&2; echo 'npm error 404 Not Found - GET https://registry.npmjs.org/@scope%2fnosuch' >&2; while [ $i -lt 30 ]; do echo \"npm error line $i\" >&2; i=$((i+1)); done; exit 1\n",
	"node.sh":     "echo \"Error: Cannot find module '/srv/index.js'\" >&2; i=0; while [ $i -lt 30 ]; do echo \"    at line $i\" >&2; i=$((i+1)); done; exit 1\n",
}

// answerServers are what mistakes meet: a word of a line that is the name of one is its URL.
func answerServers(t *testing.T) map[string]string {
	odd := func(status int, kind, body string) string {
		return (&backtest.OddServer{Status: status, Kind: kind, Body: body}).Start(t)
	}
	plain := func(h http.HandlerFunc) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.URL + "/mcp"
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	down := serve(t, nil, nobodyURL).Endpoints[0].URL
	return map[string]string{
		"AWAY": plain(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/mcp", http.StatusMovedPermanently)
		}),
		"FORBIDDEN": odd(403, "text/plain", "your plan has no MCP"),
		"BROKEN":    odd(500, "text/plain", "the database is away"),
		"SECRET":    odd(401, "text/plain", "who?"),
		"LOGIN": plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://id.example/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
		}),
		"SECURE":   secure.URL + "/mcp",
		"DOWN":     down,
		"NONE":     strings.TrimSuffix(down, "127.0.0.1") + "none",
		"NOWHERE":  strings.TrimSuffix(down, "mcp/127.0.0.1"),
		"NOTEBOOK": serve(t, nil, "two.yaml").Endpoints[0].URL,
	}
}

// Mistakes that newcomers make are answered by a line that names the cause, and what to do. A line
// of testdata/answers.txt that begins with $ is what is typed; the next one, the first line of the
// answer, is written by -update.
func TestAnswersToMistakes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the servers are scripts")
	}
	file, err := filepath.Abs(filepath.Join("testdata", "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, text := range answerFiles {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers := answerServers(t)
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		typed, isTyped := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ mcpbridge ")
		if isTyped {
			fmt.Fprintf(&got, "$ mcpbridge %s\n%s\n", typed, answerTo(t, servers, typed))
		} else if line == "\n" || strings.HasPrefix(line, "#") {
			got.WriteString(line)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if got.String() != string(text) {
		t.Errorf("the answers are\n%s\nwant, by %s (-update rewrites it),\n%s", got.String(), file, text)
	}
}

// What serve prints to try works as it is printed, with the token in its variable, where clients
// prove who they are and nobody else trusts who has issued the certificate.
func TestWhatServePrintsWorks(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	path, _ := secured(t, "tls: {cert: cert.pem, key: key.pem}\nauth: {tokens: [{name: ada, token: "+token+"}]}\nservers: {notebook: {builtin: notebook}}\n")
	out := new(bridgetest.Log)
	p := process{args: []string{"mcpbridge", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", path}, stdout: out, stderr: new(bridgetest.Log)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }() // ends with the test
	t.Cleanup(func() { cancel(); <-ended })
	bridgetest.Eventually(t, "serving", func() bool { return strings.Contains(out.String(), "In a third") || len(ended) > 0 })
	bridgetest.Eventually(t, "the commands", func() bool { return strings.Count(out.String(), "--cacert ") == 2 })
	if text := out.String(); strings.Contains(text, token) || !strings.Contains(text, "See what passes: http://") || !strings.Contains(text, "mcpbridge admin prints a link") {
		t.Errorf("serve printed\n%s\nwant the page and how it is opened, and no token", text)
	}
	for line := range strings.Lines(out.String()) {
		if _, args, isCall := strings.Cut(line, " call "); isCall {
			args = strings.ReplaceAll(strings.TrimSpace(args), "$TOKEN", token)
			if got := runCommand(t.Context(), nil, append([]string{"call"}, words(args)...)...); got.code != 0 || got.out != "saved\n" {
				t.Errorf("%s = %+v, want saved", line, got)
			}
		}
	}
}

// answerTo returns the first line that a command line is answered with, as it is on any machine, and
// the exit code.
func answerTo(t *testing.T, servers map[string]string, typed string) string {
	args := words(typed)
	for i, word := range args {
		if url := servers[word]; url != "" {
			args[i] = url
		}
	}
	got := runCommand(t.Context(), []string{"MCPBRIDGE_REMEMBER=false"}, args...)
	line := firstLine(got.err)
	if got.code == 0 {
		line = firstLine(got.out)
	}
	for name, url := range servers {
		line = strings.ReplaceAll(line, url+" ", name+" ")
	}
	return anyPort.ReplaceAllString(fmt.Sprintf("%s (exit code %d)", line, got.code), "HOST")
}
