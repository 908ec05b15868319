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

// A file with servers in each way that TOML has, comments everywhere, and odd white space.
const codexFile = "\xef\xbb\xbf# mine\r\n" +
	"model = \"gpt-5-codex\" # best\r\n" +
	"\r\n" +
	"[mcp_servers]\r\n" +
	"dotted.command = 'C:\\bin\\x' # dotted\r\n" +
	"dotted.args = []\r\n" +
	"inline = { command = \"npx\", args = [\"-y\", \"@x/inline\"], env = { A = \"b\" } } # one line\r\n" +
	"\r\n" +
	"# notes\r\n" +
	"[ mcp_servers . \"files\" ] # of files\r\n" +
	"  command = \"npx\" # from npm\r\n" +
	"  args = [\r\n" +
	"    # yes\r\n" +
	"    \"-y\",\r\n" +
	"    \"@x/files\",\r\n" +
	"  ]\r\n" +
	"startup_timeout_sec = 20\r\n" +
	"\r\n" +
	"[projects.\"/home/ada\"]\r\n" +
	"trust_level = \"trusted\"\r\n" +
	"\r\n" +
	"[mcp_servers.files.env]\r\n" +
	"TOKEN = \"x\"\r\n" +
	"\r\n" +
	"[mcp_servers.docs]\r\n" +
	"url = \"https://h/mcp?k=v\" # docs\r\n" +
	"http_headers = { Authorization = \"Bearer x\", \"X_Key\" = \"y\" } # secret\r\n" +
	"enabled_tools = [\"a\"]\r\n" +
	"\r\n" +
	"[mcp_servers.last]\r\n" +
	"url = \"http://localhost/mcp\"\r\n" +
	"[mcp_servers.last.http_headers]\r\n" +
	"# more\r\n" +
	"A = \"b\"\r\n" +
	"[tui]\r\n" +
	"theme = \"dark\""

func codexEdit() *Edit { return &Edit{Host: codex, Binary: "/opt/mcpbridge"} }

// Comments, order, line ends and other settings are not changed.
func TestInstallTOML(t *testing.T) {
	got := edited(t, codexEdit().Install, codexFile)
	want := strings.NewReplacer(
		`command = 'C:\bin\x'`, `command = "/opt/mcpbridge"`,
		"args = []", `args = ["wrap", "--", "C:\\bin\\x"]`,
		`command = "npx", args = ["-y"`, `command = "/opt/mcpbridge", args = ["wrap", "--", "npx", "-y"`,
		`  command = "npx" #`, `  command = "/opt/mcpbridge" #`,
		"    # yes\r\n    \"-y\"", "    # yes\r\n    \"wrap\",\r\n    \"--\",\r\n    \"npx\",\r\n    \"-y\"",
		"url = \"https://h/mcp?k=v\" # docs\r\nhttp_headers = { Authorization = \"Bearer x\", \"X_Key\" = \"y\" } # secret\r\n",
		"command = \"/opt/mcpbridge\" # docs\r\nargs = [\"wrap\", \"--name\", \"docs\", \"https://h/mcp\"]\r\nenv = { MCPBRIDGE_SERVERS__DOCS__HEADERS__AUTHORIZATION = \"Bearer x\", MCPBRIDGE_SERVERS__DOCS__HEADERS__X_Key = \"y\", MCPBRIDGE_SERVERS__DOCS__URL = \"https://h/mcp?k=v\" }\r\n",
		"url = \"http://localhost/mcp\"\r\n[mcp_servers.last.http_headers]\r\n# more\r\nA = \"b\"\r\n",
		"command = \"/opt/mcpbridge\"\r\nargs = [\"wrap\", \"--name\", \"last\", \"http://localhost/mcp\"]\r\nenv = { MCPBRIDGE_SERVERS__LAST__HEADERS__A = \"b\" }\r\n# more\r\n",
	).Replace(codexFile)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Uninstall removes mcpbridge, and keeps the user's later changes.
func TestUninstallTOML(t *testing.T) {
	e := codexEdit()
	installed := edited(t, e.Install, codexFile)
	replaced := func(old, new string) string { return strings.Replace(codexFile, old, new, 1) }
	for _, tt := range []struct {
		name           string
		before         []byte
		old, new       string // the user's change
		want, contains string
	}{
		{"nothing changed", []byte(codexFile), "", "", codexFile, ""},
		{"changed elsewhere", []byte(codexFile), `"dark"`, `"light"`, replaced(`"dark"`, `"light"`), ""},
		{"a folder is trusted", []byte(codexFile), "[tui]", "[projects.\"/src\"]\r\ntrust_level = \"trusted\"\r\n\r\n[tui]", replaced("[tui]", "[projects.\"/src\"]\r\ntrust_level = \"trusted\"\r\n\r\n[tui]"), ""},
		{"changed in many places", []byte(codexFile), "# notes", "# my notes\r\n[mcp_servers.new]\r\ncommand = \"n\"\r\n", replaced("# notes", "# my notes\r\n[mcp_servers.new]\r\ncommand = \"n\"\r\n"), ""},
		{"one more setting", []byte(codexFile), "startup_timeout_sec = 20", "startup_timeout_sec = 30", replaced("= 20", "= 30"), ""},
		{"one more argument", []byte(codexFile), "\"@x/files\",", "\"@x/files\", \"/notes\",", replaced("\"@x/files\",", "\"@x/files\", \"/notes\","), ""},
		{"another command", []byte(codexFile), `"--", "npx", "-y"`, `"--", "bunx", "-y"`, replaced(`command = "npx", args`, `command = "bunx", args`), ""},
		{"another query", []byte(codexFile), `?k=v`, `?k=w`, "", "url = \"https://h/mcp?k=w\" # docs\r\nhttp_headers = { Authorization = \"Bearer x\", X_Key = \"y\" }\r\nenabled_tools"},
		{"one more variable", []byte(codexFile), `HEADERS__A = "b"`, `HEADERS__A = "b", MINE = "z"`, "", "url = \"http://localhost/mcp\"\r\nhttp_headers = { A = \"b\" }\r\n# more"},
		{"a table within another one", []byte(codexFile), "# more", "[x]\r\nk = 1\r\n# more", "", "http_headers = { A = \"b\" }\r\n[x]\r\nk = 1\r\n# more\r\n[tui]"},
		{"without the copy", nil, "", "", "", "url = \"https://h/mcp?k=v\" # docs\r\nhttp_headers = {"},
		{"a copy that is another file", []byte("[mcp_servers.files]\ncommand = \"other\""), "", "", "", "  command = \"npx\" # from npm\r\n  args = [\r\n    # yes\r\n    \"-y\","},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := strings.Replace(installed, tt.old, tt.new, 1)
			if data == installed && tt.old != "" {
				t.Fatal("nothing was changed")
			}
			out, _, err := e.Uninstall([]byte(data), tt.before)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(out); tt.want != "" && got != tt.want || !strings.Contains(got, tt.contains) || strings.Contains(got, "mcpbridge") {
				t.Errorf("got\n%s\nwant\n%s%s", got, tt.want, tt.contains)
			}
			if _, err := parseTOML(out); err != nil {
				t.Errorf("got what can't be parsed: %v", err)
			}
		})
	}
}

// Servers that are not changed, and why.
func TestSpareTOML(t *testing.T) {
	for _, tt := range []struct{ name, server, want string }{
		{"not a table", "mcp_servers.a = 3", "is not an object"},
		{"nothing", "[mcp_servers.a]", "has neither a command nor a URL"},
		{"another host's key", "[mcp_servers.a]\nserverUrl = \"http://localhost\"", "has neither a command nor a URL"},
		{"wrapped", "[mcp_servers.a]\ncommand = \"mcpbridge\"\nargs = [\"wrap\", \"--\", \"x\"]", "runs under mcpbridge already"},
		{"login", "[mcp_servers.a]\nurl = \"https://h/mcp\"\nscopes = [\"a\"]", "Codex logs in to it (scopes), which mcpbridge can't do in its place"},
		{"login that may be", "[mcp_servers.a]\nurl = \"https://h/mcp\"", "has no credentials in the file, so Codex may log in to it by OAuth, which mcpbridge can't do in its place; name it to wrap it all the same"},
		{"no list", "[mcp_servers.a]\ncommand = \"x\"\nargs = \"y\"", "has args that are no list of texts"},
		{"no texts", "[mcp_servers.a]\ncommand = \"x\"\nargs = [1]", "has args that are no list of texts"},
		{"on this machine", "[mcp_servers.a]\nurl = \"http://127.0.0.1:3000/mcp\"", ""},
		{"a token", "[mcp_servers.a]\nurl = \"https://h\"\nbearer_token_env_var = \"TOKEN\"", "has a header from the environment (bearer_token_env_var), which only the one entry of --all passes on"},
		{"a header", "[mcp_servers.a]\nurl = \"https://h\"\nenv_http_headers = { A = \"B\" }", "has a header from the environment (env_http_headers), which only the one entry of --all passes on"},
		{"odd header", "[mcp_servers.a]\nurl = \"https://h\"\nhttp_headers = { A__B = \"c\" }", "has a header with __ in its name, which no environment variable can pass on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, outcomes, err := codexEdit().Install([]byte(tt.server))
			if err != nil {
				t.Fatal(err)
			}
			if got := outcomes[0]; got.Changed == (tt.want != "") || tt.want != "" && got.Why != tt.want {
				t.Errorf("got %+v, want %q", got, tt.want)
			}
			if (string(out) == tt.server) != (tt.want != "") {
				t.Errorf("the file is %s", out)
			}
		})
	}
}

// What is wrong in the file is said with its place.
func TestSyntaxTOML(t *testing.T) {
	for _, tt := range []struct {
		in           string
		line, column int
		why          string
	}{
		{"a = 1\nb = [1", 2, 6, "array is incomplete"},
		{"[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n", 3, 1, "key command is already defined"},
		{"[mcp_servers.a]\n[mcp_servers.a]\n", 2, 2, "table a already exists"},
	} {
		_, _, err := codexEdit().Install([]byte(tt.in))
		if e := (*SyntaxError)(nil); !errors.As(err, &e) || e.Line != tt.line || e.Column != tt.column || !strings.Contains(e.Why, tt.why) || e.Format != "TOML" {
			t.Errorf("%q: %#v, want line %d, column %d, %s", tt.in, err, tt.line, tt.column, tt.why)
		}
	}
}

func codexGroup() *Group {
	g := newGroup(codex)
	g.Path = "/home/ada/.codex/config.toml"
	return g
}

// The one entry is written as what it replaces; what stays keeps its lines and comments.
func TestGroupInstallTOML(t *testing.T) {
	got, move := grouped(t, codexGroup(), codexFile)
	if want := []string{"dotted", "inline", "files", "docs", "last"}; !slices.Equal(move, want) {
		t.Errorf("moved %q, want %q", move, want)
	}
	want := "\xef\xbb\xbf# mine\r\n" +
		"model = \"gpt-5-codex\" # best\r\n" +
		"\r\n" +
		"[mcp_servers]\r\n" +
		"[projects.\"/home/ada\"]\r\n" +
		"trust_level = \"trusted\"\r\n" +
		"\r\n" +
		"[mcp_servers.mcpbridge]\r\n" +
		"command = \"/opt/mcpbridge\"\r\n" +
		"args = [\"wrap\", \"--all\", \"/state/servers.yaml\"]\r\n" +
		"startup_timeout_sec = 20\r\n" +
		"[tui]\r\n" +
		"theme = \"dark\""
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The entry is written as the server was in whose place it is, and gets the variables that Codex
// has passed on, and the longest times.
func TestGroupEntryTOML(t *testing.T) {
	const args = `args = ["wrap", "--all", "/state/servers.yaml"]`
	for _, tt := range []struct{ before, want string }{
		{"[mcp_servers]\n  a = { command = \"x\" } # c\nb = { command = \"y\", enabled = false }\n",
			"[mcp_servers]\n  mcpbridge = { command = \"/opt/mcpbridge\", " + args + " }\nb = { command = \"y\", enabled = false }\n"},
		{"mcp_servers . a . command = \"x\"\nmodel = \"m\"", "mcp_servers . mcpbridge = { command = \"/opt/mcpbridge\", " + args + " }\nmodel = \"m\""},
		{"[mcp_servers.a]\nurl = \"https://h\"\nbearer_token_env_var = \"T\"\ntool_timeout_sec = 50\n[mcp_servers.b]\ncommand = \"x\"\nenv_vars = [\"V\", { name = \"U\", source = \"local\" }]\ntool_timeout_sec = 90.5\n[mcp_servers.mcpbridge]\ncommand = \"m\"\nenabled = false\n",
			"[mcp_servers.mcpbridge-2]\ncommand = \"/opt/mcpbridge\"\n" + args + "\nenv_vars = [\"T\", \"U\", \"V\"]\ntool_timeout_sec = 90.5\n[mcp_servers.mcpbridge]\ncommand = \"m\"\nenabled = false\n"},
		{"[mcp_servers.a.env]\nB = \"c\"\n[mcp_servers.a]\ncommand = \"x\"\n", "[mcp_servers.mcpbridge]\ncommand = \"/opt/mcpbridge\"\n" + args + "\n"},
	} {
		g := codexGroup()
		got, move := grouped(t, g, tt.before)
		if got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
		if back, _, err := g.Restore([]byte(got), []byte(tt.before), move); err != nil || string(back) != tt.before {
			t.Errorf("got\n%s, %v\nwant\n%s", back, err, tt.before)
		}
	}
}

// What a user or Codex changes beside the one entry stays as it is, and all else is as it was.
func TestGroupRestoreTOML(t *testing.T) {
	g := codexGroup()
	installed, move := grouped(t, g, codexFile)
	replaced := func(old, new string) string { return strings.Replace(codexFile, old, new, 1) }
	const fresh = "[mcp_servers.new]\r\ncommand = \"n\"\r\n"
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", "", "", codexFile},
		{"a setting", `"dark"`, `"light"`, replaced(`"dark"`, `"light"`)},
		{"a server at the end", "theme = \"dark\"", "theme = \"dark\"\r\n" + fresh, replaced("theme = \"dark\"", "theme = \"dark\"\r\n"+fresh)},
		{"a server after the entry", "[tui]", fresh + "[tui]", replaced("[tui]", fresh+"[tui]")},
		{"a server before the others", "[projects", fresh + "[projects", ""},
		{"a setting of the table before", "[mcp_servers.mcpbridge]", "more = 1\r\n[mcp_servers.mcpbridge]", replaced("[mcp_servers.files.env]", "more = 1\r\n[mcp_servers.files.env]")},
		{"what may be called is remembered", "[tui]", "[mcp_servers.mcpbridge.tools.files__x]\r\napproval_mode = \"approve\"\r\n[tui]", ""},
		{"another name for the entry", "mcp_servers.mcpbridge", "mcp_servers.all", ""},
		{"one setting more", "startup_timeout_sec", "enabled = true\r\nstartup_timeout_sec", ""},
		{"one is back already", "[tui]", "[mcp_servers.last]\r\nurl = \"http://localhost/mcp\"\r\nhttp_headers.A = \"b\"\r\n[tui]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := strings.Replace(installed, tt.old, tt.new, 1)
			if data == installed && tt.old != "" {
				t.Fatal("nothing was changed")
			}
			out, _, err := g.Restore([]byte(data), []byte(codexFile), move)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && string(out) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", out, tt.want)
			}
			holdsAllTOML(t, out, []byte(codexFile), move)
			if strings.Contains(tt.new, fresh) && !strings.Contains(string(out), fresh) || strings.Contains(string(out), "/opt/mcpbridge") {
				t.Errorf("got\n%s", out)
			}
		})
	}
}

// holdsAllTOML wants servers in a file as they are in before.
func holdsAllTOML(t *testing.T, out, before []byte, names []string) {
	t.Helper()
	f, err := parseTOML(out)
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	was, _ := parseTOML(before) // was parsed before
	for _, name := range names {
		if got, want := f.valuesOf(name), was.valuesOf(name); string(got) != string(want) {
			t.Errorf("%s is %s, was %s, in\n%s", name, got, want, out)
		}
	}
}

// What would be lost is refused.
func TestGroupRefusesTOML(t *testing.T) {
	g := codexGroup()
	const before = "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.b]\ncommand = \"y\"\n"
	installed, move := grouped(t, g, before)
	if _, _, err := g.Restore([]byte("[mcp_servers.a]\ncommand = \"x\"\n"), []byte(before), move); !errors.Is(err, ErrNoEntry) {
		t.Errorf("without the entry: %v", err)
	}
	if out, _, err := g.Restore([]byte(before), []byte(before), move); err != nil || string(out) != before {
		t.Errorf("restored already: %s, %v", out, err)
	}
	if _, _, err := g.Restore([]byte(installed+"[mcp_servers.a]\ncommand = \"other\"\n"), []byte(before), move); err == nil || !strings.HasPrefix(err.Error(), "a was moved, and is in the file again, but not as it was: ") {
		t.Errorf("with another a: %v", err)
	}
	if out, _, err := g.Restore([]byte(installed+before), []byte(before), move); err != nil || string(out) != before {
		t.Errorf("with all of them: %s, %v; want %s", out, err, before)
	}
}

// Which servers stay in the file, and why; and what the entry of before keeps.
func TestGroupStayTOML(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"mcp_servers = { a = { command = \"x\" } }", "is in one inline table with others, mcp_servers = { … }; write it as [mcp_servers.a] to move it"},
		{"[mcp_servers.a]\ncommand = \"x\"\nenabled = false", "is disabled, and stays so that it can be enabled in Codex"},
		{"[mcp_servers.a]\ncommand = \"x\"\nexperimental_environment = \"remote\"", "runs where Codex says (experimental_environment), which mcpbridge can't do"},
		{"[mcp_servers.a]\ncommand = \"${HOME}/x\"", "has ${…}, which Codex passes on as it is, and mcpbridge replaces"},
		{"[mcp_servers.a]\nurl = \"https://h\"\nbearer_token_env_var = \"T\"", ""},
		{"mcp_servers.a = 3", "is not an object"},
	} {
		stay, move, err := codexGroup().Stay([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" && (len(move) != 1 || len(stay) > 0) || tt.want != "" && (len(move) > 0 || stay[0].Why != tt.want) {
			t.Errorf("%s: moved %q, stayed %+v, want %q", tt.in, move, stay, tt.want)
		}
	}
	g := codexGroup()
	entry := "[mcp_servers.mcpbridge]\ncommand = \"/opt/mcpbridge\"\nargs = [\"wrap\", \"--all\", \"/state/servers.yaml\"]\n"
	allowed := "enabled = true\n[mcp_servers.mcpbridge.tools.x]\napproval_mode = \"approve\"\n"
	if got := string(g.Carry([]byte(entry+"[tui]\n"), []byte(entry+allowed))); got != entry+allowed+"[tui]\n" {
		t.Errorf("carried\n%s", got)
	}
}

// Whatever a user does beside, the moved servers come back as they were, and so do wrapped ones.
func TestRandomEditsTOML(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const added = "[mcp_servers.added] # mine\ncommand = \"n\"\n"
	for range 600 {
		before := randomTOML(r)
		g := codexGroup()
		wrapped := edited(t, g.Edit.Install, before)
		if got := edited(t, func(b []byte) ([]byte, []Change, error) { return g.Uninstall(b, []byte(before)) }, wrapped); got != before {
			t.Fatalf("%q\nbecame %q\nand %q", before, wrapped, got)
		}
		_, move, err := g.Stay([]byte(before))
		if err != nil || len(move) == 0 {
			continue
		}
		move = move[r.IntN(len(move)):]
		out, err := g.Group(before, move)
		if err != nil {
			t.Fatal(err)
		}
		if back, _, err := g.Restore(out, []byte(before), move); err != nil || string(back) != before {
			t.Fatalf("%q\nbecame %q\nand %q, %v", before, out, back, err)
		}
		changed := addTable(r, out, added)
		back, _, err := g.Restore(changed, []byte(before), move)
		if err != nil {
			t.Fatalf("%q\nbecame %q: %v", before, changed, err)
		}
		holdsAllTOML(t, back, []byte(before), move)
		if !strings.Contains(string(back), added) {
			t.Fatalf("%q\nbecame %q\nand lost what was added: %q", before, changed, back)
		}
	}
}

// Group is Install with a text.
func (g *Group) Group(before string, move []string) ([]byte, error) {
	return g.Install([]byte(before), move)
}

// addTable adds a table before some other one, or at the end.
func addTable(r *rand.Rand, data []byte, table string) []byte {
	f, err := parseTOML(data)
	if err != nil {
		panic(err)
	}
	at := []int{len(data)}
	for _, s := range f.settings {
		if s.header {
			begin, _, _ := f.lineOf(s.from, s.to)
			at = append(at, begin)
		}
	}
	i := at[r.IntN(len(at))]
	if i > 0 && data[i-1] != '\n' {
		table = "\n" + table
	}
	return slices.Concat(data[:i], []byte(table), data[i:])
}

// randomTOML has some servers in any shape, with white space and comments between.
func randomTOML(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	eol := func() string {
		return pick("", "", " ", "# c", " # [x]") + pick("\n", "\n", "\n\n", "\r\n", "\n# d\n", "\n\t\n")
	}
	var b strings.Builder
	b.WriteString(pick("", "# top\n", "model = \"m\"\n"))
	n := 1 + r.IntN(4)
	dotted := r.IntN(2) == 0 // and then there is no [mcp_servers]
	for i := range n {
		if dotted {
			fmt.Fprintf(&b, "%smcp_servers%s.d%d.command = %s%s", pick("", "  "), pick("", " "), i, pick(`"x"`, `'y'`), eol())
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, "mcp_servers.d%d.args = [%s]%s", i, pick("", " ", `"a"`, "\n # e\n 'b',\n"), eol())
			}
		}
	}
	if !dotted && r.IntN(3) > 0 {
		b.WriteString("[mcp_servers]" + eol())
		for i := range n {
			fmt.Fprintf(&b, "i%d = { %s }%s", i, pick(`command = "x"`, `url = "http://localhost?a"`, `http_headers.A = "b", url = "https://h"`, `env = {A = "b"}, command = 'c', args = ['d']`), eol())
		}
	}
	for i := range n {
		fmt.Fprintf(&b, "%s[%smcp_servers.t%d]%s", pick("", "", "  "), pick("", " "), i, eol())
		switch r.IntN(3) {
		case 0:
			fmt.Fprintf(&b, "command = \"x\"%s", eol())
			b.WriteString(pick("", "args = [\"a\", \"b\"]\n", "enabled = false\n"))
		case 1:
			fmt.Fprintf(&b, "url = \"https://h\"%shttp_headers = { A = \"b\" }%s", eol(), eol())
		default:
			fmt.Fprintf(&b, "url = \"http://localhost\"%s[mcp_servers.t%d.http_headers]%sA = \"b\"%s", eol(), i, eol(), eol())
		}
		b.WriteString(pick("", "[projects.\"/"+fmt.Sprint(i)+"\"]\ntrust_level = \"trusted\"\n"))
	}
	if text := b.String(); !strings.HasSuffix(text, "\r\n") {
		return strings.TrimSuffix(text, pick("", "\n"))
	}
	return b.String()
}

// Every valid file stays one, comes back as it was, and is read without a panic.
func FuzzTOML(f *testing.F) {
	f.Add(codexFile, uint8(255))
	f.Add("mcp_servers = { a = { url = \"http://localhost\", http_headers = { A = \"b\" } }, b = { command = \"x\" } }", uint8(1))
	f.Add("[mcp_servers]\na = {\n command = \"x\", # c\n args = [ [1], 2 ],\n}\n[[x]]\na = 1\n[mcp_servers.\"b c\"]\ncommand = '''y'''\n", uint8(3))
	f.Add("[mcp_servers.a]\ncommand = \"mcpbridge\"\nargs = [\"wrap\", \"--\", \"x\"]\nenv.A = 'b'\n", uint8(1))
	f.Add("[mcp_servers]\na.command = 'x'\na.args = \"\"\n", uint8(1))
	f.Add("[mcp_servers.a]\ncommand = \"\\u007f<\\u2028\"\n", uint8(1))
	f.Fuzz(func(t *testing.T, data string, which uint8) {
		g := codexGroup()
		g.Path = filepath.FromSlash(g.Path)
		root, err := ParseTOML([]byte(data))
		if err != nil {
			return
		}
		checkAdapted(t, codex, root, []byte(data))
		out, outcomes, err := g.Edit.Install([]byte(data))
		if err != nil {
			t.Fatalf("Install(%q): %v", data, err)
		}
		if _, err := parseTOML(out); err != nil {
			t.Fatalf("Install(%q) = %q: %v", data, out, err)
		}
		back, _, err := g.Uninstall(out, []byte(data))
		if err != nil {
			t.Fatalf("Uninstall(%q): %v", out, err)
		}
		wrapped := slices.ContainsFunc(outcomes, func(c Change) bool { return strings.HasPrefix(c.Why, "runs under") })
		if !wrapped && string(back) != data {
			t.Errorf("there and back: %q, want %q", back, data)
		}
		_, all, err := g.Stay([]byte(data))
		if err != nil {
			t.Fatal(err)
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
		if out, err = g.Install([]byte(data), move); err != nil {
			t.Fatalf("Install(%q): %v", data, err)
		}
		if back, _, err = g.Restore(out, []byte(data), move); err != nil || string(back) != data {
			t.Fatalf("Install(%q) = %q; Restore = %q, %v", data, out, back, err)
		}
	})
}
