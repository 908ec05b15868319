package layer_test

import (
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
)

var fuzzedFiles = []string{
	"", "{", "[", "listen: 127.0.0.1:1\n", "servers:\n  a: {builtin: notebook}\n", "servers: {notebook: {builtin: notebook}}\n---\nx", "a: *b\n\n", "x: \x00", "\n\n\xff",
	"servers: {a: {command: x, args: &a [1, true]}, b: {command: y, args: *a, env: {K: '${TOKEN}'}}}\nlimits: {memory: 64MiB, body: 1KiB}\n",
	"servers:\n  web: {url: 'https://h/mcp?k=${TOKEN:-x}', headers: {A: b}, timeouts: {request: 1m}, cache: {tools/list: {ttl: 1m, scope: public}}}\n",
	`{"mcpServers": {"a": {"command": "x", "args": ["-y"], "env": {"K": "${input:k}"}}, "b": {"url": "http://h", "type": "sse"}}}`,
	"{\"servers\": {\"a\": {\"type\": \"stdio\", /* c */ \"command\": \"x\",}},\n \"inputs\": []}", "[mcp_servers.a]\ncommand = 'x'\n", "\tx: y\n", "? [a]\n: b\n<<: {a: b}\n",
	"public_url: https://h\nauth: {tokens: [{name: a, token: 0123456789abcdef}, ~, &t {name: b, sha256: x, scopes: [s]}, *t]}\nservers:\n  a: {builtin: notebook, auth: none}\n  b: {builtin: notebook, auth: {jwt: {issuer: 'https://i', algorithms: [RS256], introspection: {client_id: x}}}}\n",
	"auth: none\nservers: {a: {builtin: notebook, auth: {mtls: {}, word: none}, policy: {default: deny, rules: [{allow: {tools: [a]}}, ~]}}}\n", "auth: [none]\nservers: {a: {auth: ~}}\n",
	"&a servers: &a {x: *a}\nserver: y\nservers: 1\nmcpServers: 2\nlog: {level: loud}\ndisabled: true\n", "%YAML 2\n---\n", "a: 'b\n", "a: \"\\q\"\n",
}

func TestLoadsTheSameTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	for _, text := range fuzzedFiles {
		for range 5 { // maps have orders of their own
			loadTwice(t, path, text, fileMistakes(t, text))
		}
	}
}

// FuzzLoad reads configurations: none makes Load panic, every mistake that the file
// shows names a line of it, and what loads loads the same twice. A whole load takes a
// millisecond, so that one text of many has it.
func FuzzLoad(f *testing.F) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // nearly all of the heap is garbage
	for _, text := range fuzzedFiles {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "c.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<10 || strings.Contains(text, "file") || strings.Contains(text, "include") {
			return // no fuzzer shall choose which files are read
		}
		mistakes := fileMistakes(t, text)
		if crc32.ChecksumIEEE([]byte(text))%256 == 0 {
			loadTwice(t, path, text, mistakes)
		}
	})
}

// fileMistakes returns how many mistakes the file shows by itself, each of which has to
// name a line.
func fileMistakes(t *testing.T, text string) int {
	rep := key.NewReport("")
	layer.Check("c.yaml", text, []string{"TOKEN=s3cret"}, config.Keys(), rep)
	for _, p := range append(rep.Errors, rep.Warnings...) {
		if !namesLine(p, text) {
			t.Errorf("%q: %q names no line", text, p)
		}
	}
	return len(rep.Errors)
}

// namesLine reports whether p names a line of text, as YAML counts them. In UTF-16, which
// YAML knows by its first two bytes, lines are not counted here.
func namesLine(p key.Problem, text string) bool {
	_, number, _ := strings.Cut(p.Where, ":")
	line, err := strconv.Atoi(number)
	last := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		last += strings.Count(text, end)
	}
	isUTF16 := strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff")
	return err == nil && line >= 1 && (line <= last || isUTF16)
}

// loadTwice loads a text of which so many mistakes are known.
func loadTwice(t *testing.T, path, text string, mistakes int) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{Path: path, Environ: []string{"TOKEN=s3cret"}}
	c, warnings, err := config.Load(o)
	again, warningsAgain, errAgain := config.Load(o)
	if !reflect.DeepEqual(c, again) || !reflect.DeepEqual(warnings, warningsAgain) || !reflect.DeepEqual(err, errAgain) {
		t.Errorf("%q loads as %+v, %v, %v, and again as %+v, %v, %v", text, c, warnings, err, again, warningsAgain, errAgain)
	}
	var wrong *config.Error
	if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) < max(mistakes, 1)) || err == nil && mistakes > 0 {
		t.Errorf("%q: Load = %v, want an Error of at least %d mistakes", text, err, mistakes)
	}
}
