package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// A shape is one way in which a configuration can have many of something.
type shape struct {
	name string
	line func(i int) string // of the table of servers
	tail func(n int) string // after the servers; nil for nothing
}

var shapes = []shape{
	{"URLs", func(i int) string { return fmt.Sprintf("  s%d: {url: 'https://h%d.example.com/mcp'}\n", i, i) }, nil},
	{"commands", func(i int) string {
		return fmt.Sprintf("  s%d: {command: npx, args: [-y, x%d], env: {TOKEN: '${HOME}%d'}}\n", i, i, i)
	}, nil},
	{"credentials", func(i int) string {
		return fmt.Sprintf("  s%d: {url: 'https://h/mcp', headers: {Authorization: 'Bearer 0123456789-%d'}, timeouts: {request: 5s}}\n", i, i)
	}, nil},
	{"mistakes", func(i int) string {
		return fmt.Sprintf("  s%d: {url: 'https://h/mcp', drain: 5, tools: {allow: 7}}\n", i)
	}, nil},
	{"one group of all", func(i int) string { return fmt.Sprintf("  s%d: {builtin: notebook}\n", i) }, func(int) string {
		return "groups: {all: {servers: ['*']}}\n"
	}},
	{"one group that names all", func(i int) string { return fmt.Sprintf("  s%d: {builtin: notebook}\n", i) }, func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("s%d", i))
		}
		return "groups: {all: {servers: [" + strings.Join(names, ", ") + "]}}\n"
	}},
	{"mistakes of a group, which names servers that are not there", func(i int) string { return fmt.Sprintf("  s%d: {builtin: notebook}\n", i) }, func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i))
		}
		return "groups: {all: {servers: [" + strings.Join(names, ", ") + "]}}\n"
	}},
	{"tokens of an issuer", func(i int) string { return fmt.Sprintf("  s%d: {url: 'https://h/mcp'}\n", i) }, func(int) string {
		return "public_url: https://g.example\nauth: {jwt: {issuer: 'https://id.example', audience: ['https://a.example', 'https://b.example']}}\n"
	}},
}

// text is a configuration of that shape with n servers.
func (s shape) text(n int) []byte {
	var b bytes.Buffer
	b.WriteString("servers:\n")
	for i := range n {
		b.WriteString(s.line(i))
	}
	if s.tail != nil {
		b.WriteString(s.tail(n))
	}
	return b.Bytes()
}

// load loads a configuration of that shape. It may have mistakes.
func (s shape) load(tb testing.TB, n int) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "c.yaml")
	if err := os.WriteFile(path, s.text(n), 0o600); err != nil {
		tb.Fatal(err)
	}
	_, _, err := Load(Options{Path: path, Environ: []string{"HOME=/root"}})
	if strings.HasPrefix(s.name, "mistakes") != errors.As(err, new(*Error)) {
		tb.Fatalf("%s: %v", s.name, err)
	}
}

// sizeVar has a process load a shape: its index, and how many servers it has.
const sizeVar = "MCPBRIDGE_TEST_SIZE"

// TestLoadOfSize is what TestLoadIsLinear runs.
func TestLoadOfSize(t *testing.T) {
	var at, n int
	if _, err := fmt.Sscan(os.Getenv(sizeVar), &at, &n); err != nil {
		t.Skip("for TestLoadIsLinear")
	}
	shapes[at].load(t, n)
}

// A file can have 150,000 servers: four times as many take four times the statements of this
// package and those below it, and of package slices. The counters of the coverage count them.
func TestLoadIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program that counts statements")
	}
	const few, many, most = 500, 2000, 4.6
	program := filepath.Join(t.TempDir(), "config.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-cover", "-covermode=count", "-coverpkg=./...,slices", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, s := range shapes {
		before, after := statements(t, program, i, few), statements(t, program, i, many)
		t.Logf("%s: %d statements, then %d", s.name, before, after)
		if float64(after) > most*float64(before) {
			t.Errorf("%s: %d servers take %d statements and %d take %d, %.1f times as many, want %.1f at most", s.name, few, before, many, after, float64(after)/float64(before), most)
		}
	}
}

// statements returns how many the program executes for a shape of n servers.
func statements(t *testing.T, program string, at, n int) (sum int) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestLoadOfSize$", "-test.coverprofile="+profile)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", sizeVar, at, n))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); { // FILE:FROM,TO STATEMENTS COUNT
		if words := strings.Fields(lines.Text()); len(words) == 3 && !strings.Contains(words[0], "_test.go") {
			statements, _ := strconv.Atoi(words[1])
			count, _ := strconv.Atoi(words[2])
			sum += statements * count
		}
	}
	return sum
}

// Servers share nothing that one of them could change.
func TestPlainServersShareNothing(t *testing.T) {
	c, _, err := Load(Options{Path: fileOf(t, "servers:\n  a: {command: x, env: {A: a}, args: [a], cache: {tools/list: {ttl: 5s}}}\n  b: {command: x}\n  c: {url: 'https://h/mcp'}\n  d: {url: 'https://h/mcp', headers: {A: a}, synthesize: {tools: 10s}, rate: {tools: {t: {per_second: 1}}}}\n")})
	if err != nil {
		t.Fatal(err)
	}
	b, d := c.Server("b"), c.Server("d")
	if len(b.Env)+len(b.Args)+len(b.Cache) > 0 || b.Timeouts.Connect != c.Server("a").Timeouts.Connect {
		t.Errorf("b = %+v, want what commands have by default", b)
	}
	if len(c.Server("c").Headers) > 0 || c.Server("c").Synthesize.Tools != 0 || d.Synthesize.Tools == 0 || d.Timeouts.Connect == b.Timeouts.Connect {
		t.Errorf("c = %+v, d = %+v, want only d changed, and what URLs have by default", c.Server("c"), d)
	}
	d2 := serverDecoder{plain: make(map[bool]Server)}
	for _, command := range []string{"", "x"} {
		if _, err := d2.decode(map[string]any{"command": command}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range d2.plain {
		if at := shared(reflect.ValueOf(s), ""); at != "" {
			t.Errorf("%s of all servers is the same", at)
		}
	}
}

// shared returns the first field below v that is a map, slice or pointer, and set.
func shared(v reflect.Value, at string) string {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return at
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if found := shared(v.Field(i), at+"."+v.Type().Field(i).Name); found != "" {
				return found
			}
		}
	}
	return ""
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func BenchmarkLoad(b *testing.B) {
	for _, s := range shapes[:2] {
		for _, n := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s=%d", s.name, n), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "c.yaml")
				if err := os.WriteFile(path, s.text(n), 0o600); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := Load(Options{Path: path, Environ: []string{"HOME=/root"}}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/server")
			})
		}
	}
}
