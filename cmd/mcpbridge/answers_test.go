package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

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
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	down := serve(t, nil, nobodyURL).Endpoints[0].URL
	notebook := serve(t, nil)
	page := odd(200, "text/html", "<h1>It works</h1>")
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
		"SECURE":     secure.URL + "/mcp",
		"PLAIN":      "http" + strings.TrimPrefix(secure.URL, "https") + "/mcp",
		"HTTPS":      "https" + strings.TrimPrefix(page, "http"),
		"WEBPAGE":    page,
		"WEBSOCKET":  "ws" + strings.TrimPrefix(page, "http"),
		"MISSING":    odd(404, "text/html", "<h1>Not Found</h1>"),
		"NOTALLOWED": odd(405, "text/plain", "POST is not for you"),
		"TOOMANY":    odd(429, "text/plain", "slow down"),
		"JUNK":       odd(200, "application/json", "{"),
		"SILENT":     plain(func(_ http.ResponseWriter, r *http.Request) { wait(r, gone) }),
		"CLOSES":     plain(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"OLD":        plain(answering("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)),
		"NEW":        plain(answering("server/discover", `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)),
		"DOWN":       down,
		"NONE":       strings.TrimSuffix(down, "127.0.0.1") + "none",
		"NOWHERE":    strings.TrimSuffix(down, "mcp/127.0.0.1"),
		"NOTEBOOK":   notebook.Endpoints[0].URL,
		"GUARDED":    strings.TrimPrefix(serve(t, []string{"MCPBRIDGE_ADMIN_TOKEN=0123456789abcdef"}).Admin, "http://"),
		"BUSY":       strings.TrimPrefix(notebook.Admin, "http://"),
	}
}

// wait waits until a client is gone, or the test is over.
func wait(r *http.Request, over <-chan struct{}) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
	select {
	case <-r.Context().Done():
	case <-over:
	}
}

// answering is a server that knows one method.
func answering(method, result string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the command's
		m, _ := wire.Parse(body, wire.Options{})
		w.Header().Set("Content-Type", "application/json")
		switch {
		case m.Kind() != wire.Request:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == method:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		}
	}
}

// inCapitals is what may stand for the URL of a server.
var inCapitals = regexp.MustCompile(`\b[A-Z]{3,}\b`)

// Mistakes that newcomers make are answered by a line that names the cause, and what to do. A line
// of testdata/answers.txt that begins with $ is what is typed, with variables before it; the next
// one, the first line of the answer, is written by -update. testdata/mistakes.txtar has the files.
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
	mistakes, err := os.ReadFile(filepath.Join("testdata", "mistakes.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	servers := answerServers(t)
	for _, part := range strings.Split("\n"+string(mistakes), "\n-- ")[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		text = inCapitals.ReplaceAllStringFunc(text, func(word string) string { return cmp.Or(servers[word], word) })
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		typed, isTyped := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if isTyped {
			fmt.Fprintf(&got, "$ %s\n%s\n", typed, answerTo(t, servers, typed))
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
	if runtime.GOOS == "windows" {
		t.Skip("the line is read by a shell")
	}
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
			if got := runCommand(t.Context(), nil, append([]string{"call"}, byShell(t, args, "TOKEN="+token)...)...); got.code != 0 || got.out != "saved\n" {
				t.Errorf("%s = %+v, want saved", line, got)
			}
		}
	}
}

// byShell returns the words of a line as a shell reads them.
func byShell(t *testing.T, line, variable string) []string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `printf '%s\n' `+line)
	cmd.Env = []string{variable}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// answerTo returns the first line that a command line is answered with, as it is on any machine, and
// the exit code.
func answerTo(t *testing.T, servers map[string]string, typed string) string {
	args := words(typed)
	for i, word := range args {
		args[i] = cmp.Or(servers[word], word)
	}
	at := slices.Index(args, "mcpbridge")
	environ := append(args[:at:at], "MCPBRIDGE_REMEMBER=false", "MCPBRIDGE_KEYRING=false", "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	got := runCommand(ctx, environ, args[at+1:]...)
	line, rest, more := strings.Cut(got.err, "\n")
	for got.code != 0 && more && rest != "" && strings.HasPrefix(line, "mcpbridge: warning: ") {
		line, rest, more = strings.Cut(rest, "\n")
	}
	if line == "" {
		line = firstLine(got.out)
	}
	for name, url := range servers {
		line = strings.ReplaceAll(line, url+" ", name+" ")
	}
	if got.code != 0 && !hasStep.MatchString(line) {
		t.Errorf("%s = %s, which does not say what to do", typed, line)
	}
	return anyPort.ReplaceAllString(fmt.Sprintf("%s (exit code %d)", line, got.code), "HOST")
}

// hasStep is how an answer says what to do: behind the cause, by a verb or a question, or instead of
// it, by what is wanted.
var hasStep = regexp.MustCompile(`(?i)(^mcpbridge: want|[;?:,.(] (so |or )?(accept|add|build|check|choose|close|configure|correct|give|install|leave|log in|make|move|name|put|quote|read|remove|rename|set|trust|try|use|want|write|` +
	`see|a text|the keys|did you mean|there are|there is|is it|is that so|does the|do the|was it|is the path|known here|which file|which server|if it|as in|a server of a file)\b|mcpbridge [a-z]+ shows|takes one|wants quotes|goes with|like config.example.yaml)`)
