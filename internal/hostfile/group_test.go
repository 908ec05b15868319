package hostfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file with odd white space, comments everywhere, and a comma at the end.
const scattered = "\xef\xbb\xbf{\r\n" +
	"  // what I use\r\n" +
	"  \"theme\":\"dark\",\r\n" +
	"  \"mcpServers\" : { // all\r\n" +
	"\t/* notes */ \"files\": {\r\n" +
	"\t\t\"command\": \"npx\", // from npm\r\n" +
	"\t}, // files\r\n" +
	"    \"login\": {\"url\": \"https://h/mcp\", \"oauth\": {}}, /* of\r\n two lines */ \"docs\":{\"url\":\"http://localhost/mcp\",\"headers\":{\"A__B\":\"x\"}},\"tight\":{\"command\":\"y\"}\r\n" +
	"    , \"off\": {\"command\": \"z\", \"disabled\": true} , // off\r\n" +
	"\r\n" +
	"    \"last\": {\r\n" +
	"      \"command\": \"w\"\r\n" +
	"    }, // the last\r\n" +
	"  }, // end\r\n" +
	"}\r\n"

func newGroup(h *Host) *Group {
	return &Group{Edit: &Edit{Host: h, Binary: "/opt/mcpbridge"}, File: "/state/servers.yaml", Path: "/home/ada/x.json", Machine: Machine{Home: "/home/ada", Here: "/"}}
}

func grouped(t *testing.T, g *Group, data string) (string, []string) {
	t.Helper()
	_, move, err := g.Stay([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := g.Install([]byte(data), move)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), move
}

// The one entry is laid out as what it replaces; what stays keeps its lines and comments.
func TestGroupInstall(t *testing.T) {
	got, move := grouped(t, newGroup(windsurf), scattered)
	if want := []string{"files", "docs", "tight", "last"}; !slices.Equal(move, want) {
		t.Errorf("moved %q, want %q", move, want)
	}
	want := "\xef\xbb\xbf{\r\n" +
		"  // what I use\r\n" +
		"  \"theme\":\"dark\",\r\n" +
		"  \"mcpServers\" : { // all\r\n" +
		"    \"login\": {\"url\": \"https://h/mcp\", \"oauth\": {}}, \"off\": {\"command\": \"z\", \"disabled\": true} , // off\r\n" +
		"\r\n" +
		"    \"mcpbridge\": {\r\n" +
		"      \"command\": \"/opt/mcpbridge\",\r\n" +
		"      \"args\": [\"wrap\", \"--all\", \"/state/servers.yaml\"]\r\n" +
		"    }, // the last\r\n" +
		"  }, // end\r\n" +
		"}\r\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a user changes beside the one entry stays as it is, and all else is as it was.
func TestGroupRestore(t *testing.T) {
	g := newGroup(windsurf)
	installed, move := grouped(t, g, scattered)
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", "", "", scattered},
		{"a setting", `"dark"`, `"light"`, strings.Replace(scattered, "dark", "light", 1)},
		{"a server at the front", "{ // all\r\n", "{ // all\r\n \"new\": {}, // n\r\n", ""},
		{"a server before the entry", `    "mcpbridge"`, "    \"new\": {\"command\": \"n\"},\r\n    \"mcpbridge\"", ""},
		{"a server after the entry", "}, // the last\r\n", "}, // the last\r\n    \"new\": {\"command\": \"n\"}\r\n", ""},
		{"a server that stayed", `"command": "z"`, `"command": "zz"`, strings.Replace(scattered, `"z"`, `"zz"`, 1)},
		{"a server that stayed is gone", `"off": {"command": "z", "disabled": true} , // off`, "", ""},
		{"settings of the entry", `"args"`, `"autoApprove": [], "args"`, scattered},
		{"another name for the entry", `"mcpbridge"`, `"all"`, scattered},
		{"another command", `"/opt/mcpbridge"`, `"npx"`, scattered},
		{"one is back already", `    "mcpbridge"`, "    \"tight\":{\"command\":\"y\"},\r\n    \"mcpbridge\"", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := strings.Replace(installed, tt.old, tt.new, 1)
			if data == installed && tt.old != "" {
				t.Fatal("nothing was changed")
			}
			out, _, err := g.Restore([]byte(data), []byte(scattered), move)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && string(out) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", out, tt.want)
			}
			holdsAll(t, g, out, []byte(scattered), move)
			if strings.Contains(tt.new, `"new"`) {
				added := strings.Replace(tt.new, tt.old, "", 1)
				if tt.old == `    "mcpbridge"` {
					added = strings.TrimSuffix(tt.new, tt.old)
				}
				if got := strings.Replace(string(out), added, "", 1); got != scattered {
					t.Errorf("without what was added\n%s\nwant\n%s", got, scattered)
				}
			}
		})
	}
}

// holdsAll wants the moved servers in a file as they are in before, and no entry.
func holdsAll(t *testing.T, g *Group, out, before []byte, moved []string) {
	t.Helper()
	v, err := parse(out)
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	w, _ := parse(before) // was parsed before
	now, was := g.tableOf(out, &v), g.tableOf(before, &w)
	for _, name := range moved {
		if p := now.named(name); p == nil || string(p.text) != string(was.named(name).text) {
			t.Errorf("%s is not as it was in\n%s", name, out)
		}
	}
	if g.Has(out) {
		t.Errorf("the entry is still in\n%s", out)
	}
}

// What would be lost is refused.
func TestGroupRefuses(t *testing.T) {
	g := newGroup(cursor)
	const before = `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`
	const spaced = `{"mcpServers": { "a": {"command": "x"}, "b": {"command": "y"}}}`
	installed, move := grouped(t, g, before)
	if _, _, err := g.Restore([]byte(`{"mcpServers": {"a": {"command": "x"}}}`), []byte(before), move); !errors.Is(err, ErrNoEntry) {
		t.Errorf("without the entry: %v", err)
	}
	if out, _, err := g.Restore([]byte(before), []byte(before), move); err != nil || string(out) != before {
		t.Errorf("restored already: %s, %v", out, err)
	}
	again := strings.Replace(installed, `"mcpbridge"`, `"a": {"command": "other"}, "mcpbridge"`, 1)
	if _, _, err := g.Restore([]byte(again), []byte(before), move); err == nil || !strings.HasPrefix(err.Error(), "a was moved, and is in the file again, but not as it was: ") {
		t.Errorf("with another a: %v", err)
	}
	both := strings.Replace(installed, `"mcpbridge"`, `"a": {"command": "x"}, "b": {"command": "y"}, "mcpbridge"`, 1)
	if out, _, err := g.Restore([]byte(both), []byte(before), move); err != nil || string(out) != spaced {
		t.Errorf("with all of them: %s, %v; want %s", out, err, spaced)
	}
	both = strings.Replace(installed, `"mcpbridge"`, `"a": {"command": "x"}, "mcpbridge"`, 1)
	both = strings.Replace(both, `yaml"]}`, `yaml"]}, "b": {"command": "y"}`, 1)
	if out, _, err := g.Restore([]byte(both), []byte(before), move); err != nil || string(out) != spaced {
		t.Errorf("with all of them around it: %s, %v; want %s", out, err, spaced)
	}
}

// Which servers stay in the host's file, and why.
func TestGroupStay(t *testing.T) {
	for _, tt := range []struct {
		host         *Host
		server, want string
	}{
		{cursor, `3`, "is not an object"},
		{cursor, `{}`, "has neither a command nor a URL"},
		{cursor, `{"command": "x"}`, ""},
		{cursor, `{"command": "x", "disabled": false, "enabled": true, "sandboxEnabled": false}`, ""},
		{cline, `{"command": "x", "disabled": true}`, "is disabled, and stays so that it can be enabled in Cline"},
		{gemini, `{"command": "x", "enabled": false}`, "is disabled, and stays so that it can be enabled in Gemini CLI"},
		{cursor, `{"command": "mcpbridge", "args": ["wrap", "--", "x"]}`, "runs under mcpbridge by itself already; to move it, too, uninstall that first"},
		{cursor, `{"command": "x", "args": ["wrap", "--all", "/state/servers.yaml"]}`, "runs the servers that were moved"},
		{vscode, `{"command": "x", "env": {"A": "${input:key}"}}`, "VS Code asks the user for what it needs (${input:…})"},
		{vscode, `{"command": "x", "sandboxEnabled": true}`, "runs in a sandbox of VS Code, which mcpbridge has not"},
		{vscode, `{"command": "${workspaceFolder}/x"}`, "is told which folder VS Code works in, which the file does not say"},
		{claude, `{"command": "x", "args": ["${HOME}"]}`, "has ${…}, which Claude Desktop passes on as it is, and mcpbridge replaces"},
		{cursor, `{"url": "https://h", "auth": {}}`, "Cursor logs in to it (auth), which mcpbridge can't do in its place"},
		{claudeCode, `{"url": "https://h", "headersHelper": "x"}`, "Claude Code logs in to it (headersHelper), which mcpbridge can't do in its place"},
		{cursor, `{"url": "https://h", "headers": {"A__B": "c"}}`, ""},
		{cursor, `{"url": "https://h"}`, "has no credentials in the file, so Cursor may log in to it by OAuth, which mcpbridge can't do in its place; name it to wrap it all the same"},
	} {
		g := newGroup(tt.host)
		stay, move, err := g.Stay([]byte(`{"mcpServers": {"a": ` + tt.server + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" && (len(move) != 1 || len(stay) > 0) || tt.want != "" && (len(move) > 0 || stay[0].Why != tt.want) {
			t.Errorf("%s: moved %q, stayed %+v, want %q", tt.server, move, stay, tt.want)
		}
	}
	g := newGroup(claudeCode)
	g.Only = []string{"a", "b"}
	stay, move, err := g.Stay([]byte(`{"projects": {"/src": {"mcpServers": {"b": {"command": "x"}}}}, "mcpServers": {"a": {"url": "https://h"}, "a2": {"command": "x"}}}`))
	if err != nil || !slices.Equal(move, []string{"a"}) || len(stay) != 1 || stay[0].Why != "is for /src alone" {
		t.Errorf("moved %q, stayed %+v, %v", move, stay, err)
	}
	g.Only = []string{"c"}
	twice := newGroup(claude)
	stay, move, err = twice.Stay([]byte(`{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "a": {"command": "z"}}}`))
	if err != nil || len(stay) != 2 || stay[0] != (Change{Server: "a", Why: "has the name of another server of the file"}) || stay[1] != stay[0] || !slices.Equal(move, []string{"b"}) {
		t.Errorf("of servers of one name stay %v, and %v move, %v", stay, move, err)
	}
	if _, _, err := g.Stay([]byte(`{"mcpServers": {"a": {}}}`)); err == nil || err.Error() != `there is no server "c"; there are a` {
		t.Errorf("of a server that is not there: %v", err)
	}
}

// The entry gets the variables that the host has replaced, in the host's spelling, the longest
// timeout, and a name that is free; Gemini CLI is told that it may start it.
func TestGroupEntry(t *testing.T) {
	for _, tt := range []struct {
		host         *Host
		before, want string
	}{
		{cursor, `{"mcpServers": {"a": {"command": "x", "env": {"T": "${env:TOKEN}", "U": "${UNKNOWN}"}}, "mcpbridge": {"url": "https://h"}}}`,
			`{"mcpServers": { "mcpbridge-2": {"command": "/opt/mcpbridge", "args": ["wrap", "--all", "/state/servers.yaml"], "env": {"TOKEN": "${env:TOKEN}"}}, "mcpbridge": {"url": "https://h"}}}`},
		{claudeCode, `{"mcpServers":{"a":{"command":"x","timeout":60000,"args":["${B:-c}","${A}","${MCPBRIDGE_X}"]},"b":{"command":"y","timeout":5}}}`,
			`{"mcpServers":{"mcpbridge": {"command": "/opt/mcpbridge", "args": ["wrap", "--all", "/state/servers.yaml"], "env": {"A": "${A:-}", "B": "${B:-}"}, "timeout": 60000}}}`},
		{gemini, `{"mcp": {"allowed": ["a", "b" /* x */,], "excluded": ["b"]}, "mcpServers": {"a": {"command": "x", "env": {"T": "$TOKEN"}}, "b": {"command": "x"}, "c": {"command": "x"}}}`,
			`{"mcp": {"allowed": ["a", "b", "mcpbridge" /* x */,], "excluded": ["b"]}, "mcpServers": {"mcpbridge": {"command": "/opt/mcpbridge", "args": ["wrap", "--all", "/state/servers.yaml"], "env": {"TOKEN": "${TOKEN}"}}, "b": {"command": "x"}, "c": {"command": "x"}}}`},
	} {
		g := newGroup(tt.host)
		got, move := grouped(t, g, tt.before)
		if want := strings.Replace(tt.want, `{ "`, `{"`, 1); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if back, _, err := g.Restore([]byte(got), []byte(tt.before), move); err != nil || string(back) != tt.before {
			t.Errorf("got %s, %v\nwant %s", back, err, tt.before)
		}
	}
	for host, want := range map[*Host]int{cursor: 50, claude: 48, claudeCode: 48, vscode: 64, Any: 64} {
		if got := host.NameMax(GroupName); got != want {
			t.Errorf("%s: names of %d, want %d", host.Title, got, want)
		}
	}
}

// Whatever a user does to other servers and settings, the moved ones come back as they were.
func TestGroupRandomEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		before := randomFile(r)
		g := newGroup(Any)
		_, move, err := g.Stay([]byte(before))
		if err != nil || len(move) == 0 {
			continue
		}
		move = move[r.IntN(len(move)):]
		out, err := g.Install([]byte(before), move)
		if err != nil {
			t.Fatal(err)
		}
		if back, _, err := g.Restore(out, []byte(before), move); err != nil || string(back) != before {
			t.Fatalf("%q\nbecame %q\nand %q, %v", before, out, back, err)
		}
		changed := addServer(t, g, r, out)
		back, _, err := g.Restore(changed, []byte(before), move)
		if err != nil {
			t.Fatalf("%q\nbecame %q: %v", before, changed, err)
		}
		holdsAll(t, g, back, []byte(before), move)
		if got := strings.Replace(string(back), added, "", 1); got != before {
			t.Fatalf("%q\nbecame %q\nand %q\nbut for what was added %q", before, changed, back, got)
		}
	}
}

const added = `"added":{"command":"n"},`

// addServer adds a server before some other one, right before its name.
func addServer(t *testing.T, g *Group, r *rand.Rand, data []byte) []byte {
	t.Helper()
	v, err := parse(data)
	if err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	list := g.tableOf(data, &v).list
	at := list[r.IntN(len(list))].from
	return slices.Concat(data[:at], []byte(added), data[at:])
}

// randomFile has some servers, with any white space and comments between.
func randomFile(r *rand.Rand) string {
	space := func() string {
		words := []string{"", "", " ", "\n", "\r\n\t", "  ", "/* x */", "// y\n", "/* two\nlines */ ", "//\r\n"}
		s := ""
		for range r.IntN(3) {
			s += words[r.IntN(len(words))]
		}
		return s
	}
	var b strings.Builder
	b.WriteString("{" + space() + `"mcpServers"` + space() + ":" + space() + "{" + space())
	n := 1 + r.IntN(5)
	for i := range n {
		values := []string{`{"command":"x"}`, "{\n  \"command\": \"x\" // z\n}", `{"command": "x", "disabled": true}`, `{"url": "https://h"}`}
		fmt.Fprintf(&b, `"s%d"%s:%s%s%s`, i, space(), space(), values[r.IntN(len(values))], space())
		if i < n-1 || r.IntN(2) == 0 {
			b.WriteString("," + space())
		}
	}
	b.WriteString("}" + space() + "}" + space())
	return b.String()
}

// Every valid file stays one, and comes back as it was.
func FuzzGroup(f *testing.F) {
	f.Add(scattered, uint8(255))
	f.Add(before, uint8(1))
	f.Add(`{"mcp":{"allowed":["a"]},"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}`, uint8(3))
	f.Fuzz(func(t *testing.T, data string, which uint8) {
		g := newGroup(gemini)
		g.Path = filepath.FromSlash(g.Path)
		_, all, err := g.Stay([]byte(data))
		if err != nil {
			return
		}
		var move []string
		for i, name := range all {
			if which>>(i%8)&1 == 1 {
				move = append(move, name)
			}
		}
		if len(move) == 0 {
			return
		}
		out, err := g.Install([]byte(data), move)
		if err != nil {
			t.Fatalf("Install(%q): %v", data, err)
		}
		back, _, err := g.Restore(out, []byte(data), move)
		if err != nil || string(back) != data {
			t.Fatalf("Install(%q) = %q; Restore = %q, %v", data, out, back, err)
		}
	})
}
