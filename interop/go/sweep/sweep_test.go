package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/record"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

var bridge rig.Binaries

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "", &bridge)) }

// peer returns the absolute path of a file of interop/.
func peer(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

func node(argv ...string) []string {
	return append([]string{peer("node/node_modules/.bin/node"), peer(argv[0])}, argv[1:]...)
}

// A stage is one server with mcpbridge before it, and a Recorder before each.
type stage struct {
	*server
	direct, back *record.Recorder // before the server: for clients, and for mcpbridge
	front        *record.Recorder // before mcpbridge
	path, sse    string           // of the endpoints at the server; sse is a whole URL
	admin        string
}

func start(t *testing.T, s *server, argv []string, path string) (url string) {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	fill := strings.NewReplacer("{addr}", addr, "{port}", port)
	var words, env []string
	for _, w := range argv {
		words = append(words, fill.Replace(w))
	}
	for _, e := range s.env {
		env = append(env, fill.Replace(e))
	}
	p, err := process.Start(s.name, env, words...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+addr+"/", 0); err != nil {
		t.Fatal(err)
	}
	return "http://" + addr + path
}

func listen(t *testing.T, to string) *record.Recorder {
	t.Helper()
	r, err := record.Start(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func newStage(t *testing.T, s *server) *stage {
	t.Helper()
	url := start(t, s, s.http, "/mcp")
	st := &stage{server: s, direct: listen(t, url), back: listen(t, url), path: "/mcp", admin: rig.FreeAddr(t)}
	if s.sse != nil {
		st.sse = start(t, s, s.sse, "/sse")
	}
	at := rig.FreeAddr(t)
	config := fmt.Sprintf("listen: %[1]s\nadmin: %[2]s\nservers:\n  swept: {url: %[3]q}\n  sse: {url: %[3]q}\n", at, st.admin, st.back.URL+st.path)
	p := bridge.StartBridge(t, config, st.admin)
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("mcpbridge wrote:\n%s", p.Log())
		}
	})
	st.front = listen(t, "http://"+at)
	return st
}

// A seen is what a program printed.
type seen struct {
	tools []string
	call  string
}

// run runs one command of a program, and returns what it prints.
func run(t *testing.T, argv []string, in any) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = 2 * time.Second // a grandchild may hold the pipe
	cmd.Env = append(os.Environ(), "HOME="+home, "FASTMCP_CHECK_FOR_UPDATES=off", "NO_COLOR=1")
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = bytes.NewReader(text)
	}
	var log process.Tail
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%q ended with %w; it wrote:\n%s\n%s", argv, err, out, log.String())
	}
	return string(out), nil
}

// home is where programs keep their files. It is no temporary folder of one test: nothing is kept there.
var home = filepath.Join(os.TempDir(), "mcpbridge-sweep-home")

// visit has a program list the tools and call one.
func visit(t *testing.T, p *program, at place, s *server) (*seen, error) {
	t.Helper()
	argv, in := p.list(at, s)
	text, err := run(t, argv, in)
	if err != nil {
		return nil, err
	}
	got := new(seen)
	if got.tools, err = toolsIn(text); err != nil {
		return nil, fmt.Errorf("%q printed %.300q: %w", argv, text, err)
	}
	argv, in = p.call(at, s)
	if text, err = run(t, argv, in); err != nil {
		return nil, err
	}
	if got.call, err = plain(text); err != nil {
		return nil, fmt.Errorf("%q printed %.300q: %w", argv, text, err)
	}
	if !strings.Contains(got.call, s.says) {
		return nil, fmt.Errorf("%q printed %q, want %q in it", argv, got.call, s.says)
	}
	return got, nil
}

// plain returns a JSON text without what one era has, and the other has not.
func plain(text string) (string, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", err
	}
	strip(v)
	out, err := json.Marshal(v)
	return string(out), err
}

func strip(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			strip(item)
		}
	case map[string]any:
		delete(v, "resultType")
		if meta, ok := v["_meta"].(map[string]any); ok {
			if delete(meta, "io.modelcontextprotocol/serverInfo"); len(meta) == 0 {
				delete(v, "_meta")
			}
		}
		for _, member := range v {
			strip(member)
		}
	}
}

// toolsIn returns the names of the first list of tools in a JSON text, sorted.
func toolsIn(text string) ([]string, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, err
	}
	names := namesIn(v)
	slices.Sort(names)
	return names, nil
}

func namesIn(v any) (names []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if tool, ok := item.(map[string]any); ok && tool["name"] != nil {
				names = append(names, fmt.Sprint(tool["name"]))
			}
		}
	case map[string]any:
		if list, ok := v["tools"]; ok {
			return namesIn(list)
		}
		for _, member := range v {
			if names = namesIn(member); names != nil {
				return names
			}
		}
	}
	return names
}

// counted returns the quirks that mcpbridge has counted since before, and the counts of now.
func (st *stage) counted(t *testing.T, before map[string]int) (now, since map[string]int) {
	t.Helper()
	now, since = make(map[string]int), make(map[string]int)
	for name, n := range rig.Gauges(t, http.DefaultClient, st.admin) {
		if rest, ok := strings.CutPrefix(name, "mcpbridge_quirks_total{quirk=\""); ok {
			quirk, _, _ := strings.Cut(rest, `"`)
			now[quirk] += int(n)
		}
	}
	for quirk, n := range now {
		if d := n - before[quirk]; d != 0 {
			since[quirk] = d
		}
	}
	return now, since
}

// TestPrograms has each program list and call, directly and through serve and wrap.
func TestPrograms(t *testing.T) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, &s)
			before, _ := st.counted(t, nil)
			for _, p := range programs(t) {
				if s.few && !p.quick && !all {
					continue
				}
				t.Run(p.name, func(t *testing.T) { before = st.sweep(t, &p, before) })
			}
		})
	}
}

// sweep takes one program through all ways to one server. It returns what was counted at the end.
func (st *stage) sweep(t *testing.T, p *program, before map[string]int) map[string]int {
	var want *seen
	if st.modern && p.modern || st.legacy && p.legacy {
		got, err := visit(t, p, place{url: st.direct.URL + st.path}, st.server)
		if err != nil {
			t.Fatalf("directly: %v", err)
		}
		want = got
	}
	if p.sse && st.sse != "" && (all || !p.slow) {
		if _, err := visit(t, p, place{url: st.sse, sse: true}, st.server); err != nil {
			t.Errorf("directly, HTTP+SSE: %v", err)
		}
	}
	check := func(way string, at place, servers *record.Recorder) {
		st.front.Forget()
		st.back.Forget()
		got, err := visit(t, p, at, st.server)
		switch {
		case err != nil:
			t.Errorf("%s: %v", way, err)
			return
		case len(got.tools) < st.tools: // some depend on what the client declares
			t.Errorf("%s: %d tools: %q, want at least %d", way, len(got.tools), got.tools, st.tools)
		case want != nil && (got.call != want.call || !slices.Equal(got.tools, want.tools)):
			t.Errorf("%s: %+v, want %+v as directly", way, got, want)
		}
		shown := record.ByClients(st.front.Exchanges())
		broken := record.ByServers(servers.Exchanges())
		now, since := st.counted(t, before)
		before = now
		expected := maps.Clone(shown)
		for _, q := range st.mends {
			if slices.Contains(broken, q) {
				expected[q] = since[q]
			}
		}
		if strings.HasPrefix(way, "serve") && !maps.Equal(shown, p.quirks) {
			t.Errorf("%s: the client shows %v on the wire, want %v", way, shown, p.quirks)
		}
		if !slices.Equal(broken, st.quirks) {
			t.Errorf("%s: the server shows %q on the wire, want %q", way, broken, st.quirks)
		}
		if !maps.Equal(since, expected) {
			t.Errorf("%s: mcpbridge counted %v, want %v", way, since, expected)
		}
		if n := len(servers.Exchanges()); n < 2 {
			t.Errorf("%s: %d requests came to the server, want more", way, n)
		}
	}
	check("serve", place{url: st.front.URL + "/mcp/swept"}, st.back)
	if p.sse && p.legacy && (all || !p.slow) {
		check("serve, HTTP+SSE", place{url: st.front.URL + "/sse/sse", sse: true}, st.back)
	}
	if p.stdio {
		check("wrap", place{argv: []string{st.wrap(t), st.back.URL + st.path}}, st.back)
	}
	return before
}

// wrap returns a program that is mcpbridge wrap, and which logs all to a file. When the test ends, the
// file must have the quirks that were mended, and no other.
func (st *stage) wrap(t *testing.T) string {
	t.Helper()
	file, log := filepath.Join(t.TempDir(), "wrap"), filepath.Join(t.TempDir(), "log")
	text := fmt.Sprintf("#!/bin/sh\nMCPBRIDGE_LOG__LEVEL=info exec %q wrap \"$@\" 2>>%q\n", bridge.Bridge, log)
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		said, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(said), `"msg":"request"`) {
			t.Errorf("wrap logged %q (%v), want lines for requests", said, err)
		}
		for _, m := range loggedQuirk.FindAllStringSubmatch(string(said), -1) {
			if !slices.Contains(st.mends, m[1]) {
				t.Errorf("wrap: mcpbridge met %s, want %q alone", m[1], st.mends)
			}
		}
	})
	return file
}

var loggedQuirk = regexp.MustCompile(`"quirk":"([^"]+)"`)
