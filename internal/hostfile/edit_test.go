package hostfile

import (
	"strings"
	"testing"
)

const before = "\xef\xbb\xbf{\r\n" +
	"  // what I use\r\n" +
	"  \"theme\": \"dark\", // mine\r\n" +
	"  \"mcpServers\": {\r\n" +
	"    /* notes */ \"files\": {\r\n" +
	"      \"command\": \"npx\", // from npm\r\n" +
	"      \"args\": [\r\n" +
	"        // yes\r\n" +
	"        \"-y\",\r\n" +
	"        \"@x/files\",\r\n" +
	"      ],\r\n" +
	"    },\r\n" +
	"    \"docs\": {\"url\": \"https://h/mcp?k=v\", \"headers\": {}, \"env\": {\"A\": \"b\"}},\r\n" +
	"    \"tight\":{\"url\":\"https://h/mcp\",\"headers\":{\"Authorization\":\"Bearer x\",\"X_Key\":\"y\"}},\r\n" +
	"  },\r\n" +
	"}\r\n"

func edited(t *testing.T, f func([]byte) ([]byte, []Change, error), data string) string {
	t.Helper()
	out, _, err := f([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Comments, order, line ends and other settings are not changed.
func TestInstall(t *testing.T) {
	e := &Edit{Host: cursor, Binary: "/opt/mcpbridge"}
	got := edited(t, e.Install, before)
	want := strings.NewReplacer(
		`"command": "npx"`, `"command": "/opt/mcpbridge"`,
		"        // yes\r\n        \"-y\"", "        \"wrap\",\r\n        \"--\",\r\n        \"npx\",\r\n        // yes\r\n        \"-y\"",
		`{"url": "https://h/mcp?k=v", "headers": {}, "env": {"A": "b"}}`,
		`{"command": "/opt/mcpbridge", "args": ["wrap", "--name", "docs", "https://h/mcp"], "env": {"A": "b", "MCPBRIDGE_SERVERS__DOCS__URL": "https://h/mcp?k=v"}}`,
		`{"url":"https://h/mcp","headers":{"Authorization":"Bearer x","X_Key":"y"}}`,
		`{"command":"/opt/mcpbridge", "args":["wrap", "--name", "tight", "https://h/mcp"],"env":{"MCPBRIDGE_SERVERS__TIGHT__HEADERS__AUTHORIZATION":"Bearer x","MCPBRIDGE_SERVERS__TIGHT__HEADERS__X_Key":"y"}}`,
	).Replace(before)
	got = strings.Replace(got, `"command":"/opt/mcpbridge","args"`, `"command":"/opt/mcpbridge", "args"`, 1)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Uninstall removes mcpbridge, and keeps the user's later changes.
func TestUninstall(t *testing.T) {
	e := &Edit{Host: cursor, Binary: "/opt/mcpbridge"}
	installed := edited(t, e.Install, before)
	for _, tt := range []struct {
		name           string
		before         []byte
		old, new       string // the user's change
		want, contains string
	}{
		{"nothing changed", []byte(before), "", "", before, ""},
		{"changed elsewhere", []byte(before), `"dark"`, `"light"`, strings.Replace(before, "dark", "light", 1), ""},
		{"a server of one's own", []byte(before), `/* notes */`, `"new": {"command": "x"},`, strings.Replace(before, "/* notes */", `"new": {"command": "x"},`, 1), ""},
		{"one more argument", []byte(before), `"@x/files"`, `"@x/files", "/notes"`, strings.Replace(before, `"@x/files"`, `"@x/files", "/notes"`, 1), ""},
		{"another query", []byte(before), `?k=v`, `?k=w`, "", `{"url": "https://h/mcp?k=w", "env": {"A": "b"}}`},
		{"one more header", []byte(before), `X_Key":"y"`, `X_Key":"y","MCPBRIDGE_SERVERS__TIGHT__HEADERS__X-B":"z"`, "", `"headers":{ "Authorization": "Bearer x", "X_Key": "y", "X-B": "z" }`},
		{"one more variable", []byte(before), `X_Key":"y"`, `X_Key":"y","MINE":"z"`, "", `"env":{"MINE":"z"}`},
		{"without the copy", nil, "", "", "", `"url":"https://h/mcp"`},
		{"a copy that is another file", []byte(`{"mcpServers": {"files": {"command": "other"}}}`), "", "", "", `"command": "npx", // from npm`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := installed
			if tt.old != "" {
				if data = strings.Replace(installed, tt.old, tt.new, 1); data == installed {
					t.Fatal("nothing was changed")
				}
			}
			out, _, err := e.Uninstall([]byte(data), tt.before)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(out); tt.want != "" && got != tt.want || !strings.Contains(got, tt.contains) || strings.Contains(got, "mcpbridge") {
				t.Errorf("got\n%s\nwant\n%s%s", got, tt.want, tt.contains)
			}
			if _, err := parse(out); err != nil {
				t.Errorf("got what can't be parsed: %v", err)
			}
		})
	}
}

// Servers that are not changed, and why.
func TestSpare(t *testing.T) {
	for _, tt := range []struct{ name, server, want string }{
		{"not an object", `3`, "is not an object"},
		{"nothing", `{}`, "has neither a command nor a URL"},
		{"wrapped", `{"command": "mcpbridge", "args": ["wrap", "--", "x"]}`, "runs under mcpbridge already"},
		{"wrapped, elsewhere", `{"command": "C:\\bin\\mcpbridge.exe", "args": ["wrap", "http://h"]}`, "runs under mcpbridge already"},
		{"serve is not wrap", `{"command": "mcpbridge", "args": ["serve", "x"]}`, ""},
		{"login", `{"url": "https://h/mcp", "oauth": {}}`, "Cursor logs in to it (oauth), which mcpbridge can't do in its place"},
		{"login that may be", `{"url": "https://h/mcp"}`, "has no credentials in the file, so Cursor may log in to it by OAuth, which mcpbridge can't do in its place; name it to wrap it all the same"},
		{"on this machine", `{"url": "http://127.0.0.1:3000/mcp"}`, ""},
		{"a variable", `{"url": "${env:URL}", "headers": {"A": "b"}}`, ""},
		{"a pipe", `{"url": "unix:///tmp/server.sock"}`, "is reached in a way that mcpbridge does not know: unix"},
		{"odd header", `{"url": "https://h", "headers": {"A__B": "c"}}`, "has a header with __ in its name, which no environment variable can pass on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &Edit{Host: cursor, Binary: "/opt/mcpbridge"}
			data := `{"mcpServers": {"a": ` + tt.server + `}}`
			out, outcomes, err := e.Install([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			if got := outcomes[0]; got.Changed == (tt.want != "") || tt.want != "" && got.Why != tt.want {
				t.Errorf("got %+v, want %q", got, tt.want)
			}
			if (string(out) == data) != (tt.want != "") {
				t.Errorf("the file is %s", out)
			}
		})
	}
}

// A named server is wrapped even if the host may log in to it.
func TestInstallNamed(t *testing.T) {
	e := &Edit{Host: vscode, Binary: "mcpbridge", Only: []string{"b"}}
	data := `{"servers": {"a": {"command": "x"}, "b": {"type": "http", "url": "https://h/mcp"}}}`
	want := `{"servers": {"a": {"command": "x"}, "b": {"type": "stdio", "command": "mcpbridge", "args": ["wrap", "--name", "b", "https://h/mcp"]}}}`
	if got := edited(t, e.Install, data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.Only = []string{"c"}
	if _, _, err := e.Install([]byte(data)); err == nil || err.Error() != `there is no server "c"; there are a, b` {
		t.Errorf("Install of a server that is not there: %v", err)
	}
}

// An edit keeps every valid file valid, and Uninstall restores it exactly.
func FuzzEdit(f *testing.F) {
	f.Add(before)
	f.Add(`{"servers":{"a":{"command":"x","args":[/* c */]},"b":{"url":"http://localhost","type":"sse"/*d*/}}}`)
	f.Add(`{"servers":{"a":{"command":"x","args":[1,]},"a":{"args":["wrap","x"],"command":"mcpbridge"}}}`)
	f.Add(`{"mcpServers":{"a":{"command":"mcpbridge","args":["wrap","--","x"],"env":null}}}`)
	f.Fuzz(func(t *testing.T, data string) {
		e := &Edit{Host: Any, Binary: "/opt/mcpbridge"}
		out, outcomes, err := e.Install([]byte(data))
		if err != nil {
			return
		}
		if _, err := parse(out); err != nil {
			t.Fatalf("Install(%q) = %q: %v", data, out, err)
		}
		back, _, err := e.Uninstall(out, []byte(data))
		if err != nil {
			t.Fatalf("Uninstall(%q): %v", out, err)
		}
		if _, err := parse(back); err != nil {
			t.Fatalf("Uninstall(%q) = %q: %v", out, back, err)
		}
		names := make(map[string]bool)
		for _, o := range outcomes {
			if names[o.Server] || strings.HasPrefix(o.Why, "runs under") {
				return // two of a name, or wrapped before
			}
			names[o.Server] = true
		}
		if string(back) != data {
			t.Errorf("there and back: %q, want %q", back, data)
		}
	})
}
