package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

const grouped = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // one\n    \"b\": {\"command\": \"y\"}\n  }\n}\n"

// shapes are two servers as hosts have them, and what is set before one to add another.
var shapes = []struct {
	file, grouped, added string
	head                 string // of a server with the name NAME
}{
	{"mcp.json", grouped, "    \"c\": {\"command\": \"z\"},\n", `    "NAME"`},
	{"config.toml", "[mcp_servers.a]\ncommand = \"x\" # one\n\n[mcp_servers.b]\ncommand = \"y\"\n", "[mcp_servers.c]\ncommand = \"z\"\n\n", "[mcp_servers.NAME]"},
}

// openGroup reads a host's file, and what was moved out of it before.
func openGroup(t *testing.T, path, state string) (*Group, *File) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	host := hostfile.Named("cursor")
	if filepath.Ext(path) == ".toml" {
		host = hostfile.Named("codex")
	}
	g := &Group{
		Group: hostfile.Group{Edit: &hostfile.Edit{Host: host, Binary: "/bin/true"}},
		Convert: func(_ []byte, servers []string, _ int) ([]byte, map[string]string, error) {
			return fmt.Appendf(nil, "servers: {%s: {}}\n", strings.Join(servers, ": {}, ")), nil, nil
		},
		Check: func([]byte) (string, string, error) { return "", "", nil },
	}
	if err := OpenGroup(g, f, state); err != nil {
		t.Fatal(err)
	}
	return g, f
}

func gather(t *testing.T, path, state string) {
	t.Helper()
	g, f := openGroup(t, path, state)
	c, err := g.Gather()
	if err = errors.Join(err, c.Apply(f)); err != nil {
		t.Fatal(err)
	}
}

// scattered wants a file as it was before, once its servers are back, and nothing kept.
func scattered(t *testing.T, path, state, want string) {
	t.Helper()
	g, f := openGroup(t, path, state)
	c, err := g.Scatter()
	if err = errors.Join(err, c.Apply(f)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the file has\n%s, %v, want\n%s", got, err, want)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "hosts", "*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// Wherever writing is cut off, no server is lost: it can be done again, or undone.
func TestGatherCutOff(t *testing.T) {
	for _, shape := range shapes {
		for i := range 4 * 2 * 2 {
			written, second, again := i/4, i&2 > 0, i&1 > 0
			t.Run(fmt.Sprintf("%s, %d written, second %v, again %v", shape.file, written, second, again), func(t *testing.T) {
				dir := t.TempDir()
				path, state := filepath.Join(dir, shape.file), filepath.Join(dir, "state")
				want := shape.grouped
				add := func(text, name string) string {
					head := strings.Replace(shape.head, "NAME", name, 1)
					return strings.Replace(text, head, shape.added+head, 1)
				}
				write(t, path, want)
				if second {
					gather(t, path, state)
					want = add(want, "b")
					write(t, path, add(read(t, path), "mcpbridge"))
				}
				cutOff(t, path, state, written)
				if again {
					gather(t, path, state)
					if text := read(t, path); strings.Count(text, "command") != 1 || !strings.Contains(text, "servers.yaml") {
						t.Errorf("the file has %s", text)
					}
				}
				scattered(t, path, state, want)
			})
		}
	}
}

// cutOff writes the first files of a change, and not the host's.
func cutOff(t *testing.T, path, state string, written int) {
	t.Helper()
	g, f := openGroup(t, path, state)
	c, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.moved.contents()
	if err == nil {
		err = f.makeDir(g.dir)
	}
	for _, w := range all[:written] {
		err = errors.Join(err, f.write(filepath.Join(g.dir, w.name), w.data, private))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What was moved is found where the entry says, though the state folder is another one now; and the
// entry keeps the name that it was given.
func TestGroupStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "state")
	write(t, path, grouped)
	gather(t, path, state)
	write(t, path, strings.Replace(strings.Replace(read(t, path), `"mcpbridge"`, `"all"`, 1), `    "all"`, "    \"c\": {\"command\": \"z\"},\n    \"all\"", 1))
	gather(t, path, filepath.Join(dir, "other"))
	if text := read(t, path); strings.Count(text, "command") != 1 || !strings.Contains(text, `"all": {`) || !strings.Contains(text, state) {
		t.Errorf("the file has %s", text)
	}
	scattered(t, path, filepath.Join(dir, "other"), strings.Replace(grouped, `    "b"`, "    \"c\": {\"command\": \"z\"},\n    \"b\"", 1))
	if left, _ := filepath.Glob(filepath.Join(state, "hosts", "*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// Where the host's file is back already and the folder is not gone yet, it goes.
func TestScatterCutOff(t *testing.T) {
	path, state := groupedFile(t)
	gather(t, path, state)
	write(t, path, grouped)
	scattered(t, path, state, grouped)
}

// A host that writes its file meanwhile loses nothing, and what was written for it is gone.
func TestGatherLosesNoWriteOfTheHost(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "state")
	write(t, path, grouped)
	g, f := openGroup(t, path, state)
	c, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	after := strings.Replace(grouped, `"x"`, `"xx"`, 1)
	write(t, path, after)
	if err := c.Apply(f); !errors.Is(err, ErrWritten) {
		t.Errorf("apply = %v, want %v", err, ErrWritten)
	}
	if got := read(t, path); got != after {
		t.Errorf("the file has %s", got)
	}
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
		t.Errorf("left over: %v", err)
	}
	gather(t, path, state)
	scattered(t, path, state, after)
}

// The host's file is written last: as long as the servers are nowhere else, they stay there.
func TestGatherWritesTheHostLast(t *testing.T) {
	path, state := groupedFile(t)
	g, f := openGroup(t, path, state)
	c, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	write(t, state, "is no folder")
	if err := c.Apply(f); err == nil {
		t.Error("it was moved nowhere")
	}
	if got := read(t, path); got != grouped {
		t.Errorf("the file has %s", got)
	}
}

// groupedFile writes a host's file, and returns its path and that of a folder for state.
func groupedFile(t *testing.T) (path, state string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "mcp.json")
	write(t, path, grouped)
	return path, filepath.Join(dir, "state")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
