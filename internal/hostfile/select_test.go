package hostfile

import (
	"strings"
	"testing"
)

// Servers that are called by long addresses have prefixes by which they can be told apart, and
// commands the environment that the host gives mcpbridge.
func TestShortPrefixes(t *testing.T) {
	names := []string{"github.com/modelcontextprotocol/servers/tree/main/src/time", "github.com/someone-else/servers/time/", "git", "github.com/another.one/servers/src/my__git.server_", "a-name-of-more-than-24-letters", "time-2"}
	var in []string
	for _, name := range names {
		in = append(in, quote(name)+`: {"command": "x"}`)
	}
	root, err := Parse([]byte(`{"mcpServers": {` + strings.Join(in, ",") + `, "url": {"url": "http://h"}, "other": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := cline.Adapt(Select(root, append(names, "url")), Options{Keys: []string{"command", "url"}})
	called := InheritEnv(out)
	ShortPrefixes(out, append(names, "url"))
	want := []string{"time", "time-3", "", "my_git-server", "a-name-of-more-than-24-l", "", ""}
	for i, kv := range pairs(valueOf(out, "servers")) {
		got := ""
		if p := valueOf(kv.value, "prefix"); p != nil {
			got = p.Value
		}
		if inherits := valueOf(kv.value, "inherit_env") != nil; got != want[i] || called[i] != kv.name() || inherits == (kv.name() == "url") {
			t.Errorf("%s has prefix %q, want %q; it gets the environment: %v", kv.name(), got, want[i], inherits)
		}
	}
	if len(called) != len(want) {
		t.Errorf("servers %q, want %d", called, len(want))
	}
}

// Servers are added to a file without a change of what is there.
func TestAddServers(t *testing.T) {
	const mine = "# mine\nservers:\n  a: # first\n    command: x\n    tools: {deny: [w]}\ngroups: {all: {name_max: 50}}\n"
	got, err := AddServers([]byte(mine), []byte("servers:\n  a:\n    command: z\n  # new\n  b:\n    command: y\ngroups: {all: {name_max: 9}}\n"))
	want := "# mine\nservers:\n  a: # first\n    command: x\n    tools: {deny: [w]}\n  # new\n  b:\n    command: y\ngroups: {all: {name_max: 50}}\n"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, file := range []string{"", "servers: [", "servers: 3\n", "[]\n"} {
		if got, err := AddServers([]byte(file), []byte(mine)); err == nil {
			t.Errorf("%q became %s", file, got)
		}
	}
}
