package layer_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// writeAll makes a new folder current, and writes files into it.
func writeAll(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// write puts text into a file called c.yaml and makes its folder current, so
// that messages begin with the bare name.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "c.yaml"
}

const notebook = "servers: {notebook: {builtin: notebook}}\n"

// The files of a pattern are read in the order of their names, and those of a list in its
// order. Each is read once.
func TestInclude(t *testing.T) {
	files := map[string]string{
		"conf.d/b.yaml":     "servers: {b: {builtin: notebook}, b2: {builtin: notebook}}\nlog: {level: debug}\n",
		"conf.d/a.yaml":     "servers: {a: {builtin: notebook}}\n",
		"conf.d/c.yaml":     "# nothing\n",
		"conf.d/d.json":     `{"mcpServers": {"d": {"command": "x"}}}`,
		"conf.d/.hid.yaml":  "servers: {hidden: {builtin: notebook}}\n",
		"conf.d/e.yaml/x":   "",
		"conf.d/other.conf": "nonsense",
	}
	for _, tt := range []struct {
		include         string
		servers, files  []string
		opened, missing string
	}{
		{"conf.d/*.yaml", []string{"main", "a", "b", "b2"}, []string{"conf.d/a.yaml", "conf.d/b.yaml", "conf.d/c.yaml"}, "conf.d/*.yaml", "conf.d/e.yaml"},
		{"[conf.d/d.json, conf.d/b.yaml, 'conf.d/[a-b].yaml']", []string{"main", "d", "b", "b2", "a"}, []string{"conf.d/d.json", "conf.d/b.yaml", "conf.d/a.yaml"}, "conf.d/d.json", "conf.d/c.yaml"},
		{"${DIR}/?.yaml", []string{"main", "a", "b", "b2"}, []string{"conf.d/a.yaml", "conf.d/b.yaml", "conf.d/c.yaml"}, "conf.d/?.yaml", "conf.d/.hid.yaml"},
		{"[none/*.yaml, '*.yaml']", []string{"main"}, nil, "none/*.yaml", "conf.d/a.yaml"},
		{"[]", []string{"main"}, nil, "c.yaml", "conf.d/a.yaml"},
	} {
		t.Run(tt.include, func(t *testing.T) {
			files["c.yaml"] = "servers: {main: {builtin: notebook}}\ninclude: " + tt.include + "\n"
			writeAll(t, files)
			c, warnings, err := config.Load(config.Options{Path: "c.yaml", Environ: []string{"DIR=conf.d"}})
			if err != nil || len(warnings) > 0 {
				t.Fatalf("Load = %v, %v", warnings, err)
			}
			var names []string
			for _, s := range c.Servers {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, tt.servers) || !slices.Equal(c.Include, tt.files) {
				t.Errorf("servers %q of files %q, want %q of %q", names, c.Include, tt.servers, tt.files)
			}
			if level := c.Log.Level; (level == "debug") != slices.Contains(names, "b") {
				t.Errorf("log.level is %s with servers %q", level, names)
			}
			for _, file := range append(tt.files, "c.yaml", tt.opened) {
				if !slices.Contains(c.Files(), file) {
					t.Errorf("Files = %q, want %s among them", c.Files(), file)
				}
			}
			if slices.Contains(c.Files(), tt.missing) || slices.Contains(c.Secrets(), "conf.d") {
				t.Errorf("Files = %q, secrets %q: too many", c.Files(), c.Secrets())
			}
		})
	}
}

func TestIncludeMistakes(t *testing.T) {
	include := notebook + "include: conf.d/*.yaml\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"server twice", map[string]string{"c.yaml": include, "conf.d/a.yaml": "\nservers:\n  notebook: {command: x}\n"},
			"conf.d/a.yaml:3: servers.notebook: is also a server in c.yaml:1; rename or remove one of them"},
		{"server in two included files", map[string]string{"c.yaml": include, "conf.d/a.yaml": "servers:\n  x: {command: x}\n", "conf.d/b.yaml": "mcpServers: {x: {command: y}}\nlog: {}\n"},
			"conf.d/b.yaml:1: servers.x: is also a server in conf.d/a.yaml:2; rename or remove one of them"},
		{"group twice", map[string]string{"c.yaml": include + "groups: {all: {servers: [notebook]}}\n", "conf.d/a.yaml": "groups: {some: {servers: [notebook]}, all: {servers: [notebook]}}\n"},
			"conf.d/a.yaml:1: groups.all: is also a group in c.yaml:3; rename or remove one of them"},
		{"key twice", map[string]string{"c.yaml": include + "log: {level: info}\n", "conf.d/a.yaml": "drain: 5s\n", "conf.d/b.yaml": "\ndrain: 6s\nlog: {format: text}\n"},
			"conf.d/b.yaml:2: drain: is also set in conf.d/a.yaml:1; remove one of them\nconf.d/b.yaml:3: log: is also set in c.yaml:3; remove one of them"},
		{"included file that includes", map[string]string{"c.yaml": include, "conf.d/a.yaml": "include: []\n"},
			"conf.d/a.yaml:1: include: an included file can't include others; write it into c.yaml"},
		{"mistakes of each file, in order", map[string]string{"c.yaml": include + "\n\ndrain: 5\n", "conf.d/a.yaml": "\nlisen: x\n", "conf.d/b.yaml": "servers:\n  b: {command: x, url: 'http://h'}\n", "conf.d/c.yaml": "a: 'b\n"},
			"c.yaml:5: drain: \"5\" has no unit; write one such as 300ms, 10s or 5m\nconf.d/a.yaml:2: lisen: unknown key; did you mean listen?\nconf.d/b.yaml:2: servers.b: command and url are both set; remove one of them\nconf.d/c.yaml:2: not readable as YAML or JSON: found unexpected end of stream; a quote is not closed; close it"},
		{"missing file", map[string]string{"c.yaml": notebook + "include:\n  - conf.d/*.yaml\n  - conf.d/a.yaml\n"},
			"c.yaml:4: include: there is no file conf.d/a.yaml; create it, or write a pattern such as conf.d/*.yaml, which may match none"},
		{"folder", map[string]string{"c.yaml": notebook + "include: conf.d\n", "conf.d/a.yaml": ""}, "c.yaml:2: include: conf.d is a folder; name a file in it"},
		{"file for a folder", map[string]string{"c.yaml": notebook + "include: a/*.yaml\n", "a": ""}, "c.yaml:2: include: can't be read: open a: not a directory"},
		{"itself", map[string]string{"c.yaml": notebook + "include: ./c.yaml\n"}, "c.yaml:2: include: names this file itself; remove it"},
		{"no name", map[string]string{"c.yaml": notebook + "include: ''\n"}, "c.yaml:2: include: names no file; write one, or a pattern such as conf.d/*.yaml"},
		{"no value", map[string]string{"c.yaml": notebook + "include:\n"}, "c.yaml:2: include: want a list, as in [a, b]; found nothing"},
		{"keys", map[string]string{"c.yaml": notebook + "include: {a: b}\n"}, "c.yaml:2: include: want a list, as in [a, b]; found keys with values"},
		{"no variable", map[string]string{"c.yaml": notebook + "include: ['${NONE}', none.yaml]\n"}, "c.yaml:2: include.0: environment variable NONE is not set; set it, or write ${NONE:-default}"},
		{"pattern of folders", map[string]string{"c.yaml": notebook + "include: '*/a.yaml'\n"}, "c.yaml:2: include: only the last part of the path may be a pattern; write an entry for each folder, as in [a/*.yaml, b/*.yaml]"},
		{"no pattern", map[string]string{"c.yaml": notebook + "include: 'conf.d/[a'\n"}, `c.yaml:2: include: "[a" is not a pattern; write one such as *.yaml`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writeAll(t, tt.files)
			_, _, err := config.Load(config.Options{Path: "c.yaml"})
			if err == nil || err.Error() != tt.want {
				t.Errorf("Load =\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
	_, _, err := config.Load(config.Options{Path: write(t, notebook), Environ: []string{"MCPBRIDGE_INCLUDE=[a.yaml]"}})
	if want := "MCPBRIDGE_INCLUDE: include: can't be set by the environment; write it into the file"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

// A mistake in an included file is at its line, for those who show it.
func TestIncludeAt(t *testing.T) {
	writeAll(t, map[string]string{"c.yaml": "include: a.yaml\n" + notebook, "a.yaml": "\n\nlisen: x\n"})
	_, _, err := config.Load(config.Options{Path: "c.yaml"})
	var mistakes *config.Error
	if !errors.As(err, &mistakes) {
		t.Fatalf("Load = %v", err)
	}
	if file, line := mistakes.Problems[0].At(); file != "a.yaml" || line != 3 {
		t.Errorf("it is at %s:%d, want a.yaml:3", file, line)
	}
}

// Paths in an included file are relative to that file, and those of the others are not.
func TestIncludePaths(t *testing.T) {
	writeAll(t, map[string]string{
		"c.yaml":        "include: conf.d/*.yaml\nadmin_token: '${file:token}'\nservers: {main: {command: x, env_file: env}}\n",
		"token":         "the-token-of-main\n",
		"env":           "K=main\n",
		"conf.d/token":  "the-token-below-it\n",
		"conf.d/env":    "K=below\n",
		"conf.d/a.yaml": "tls: {cert: cert.pem, key: key.pem}\nmetrics_token: '${file:token}'\nservers:\n  a: {command: x, env_file: env}\n  b: {url: 'https://h', tls: {ca: ca.pem}, upstream_auth: {client_credentials: {issuer: 'https://i', client_id: c, private_key: key.pem}}}\n",
	})
	bridgetest.NewAuthority(t, "a").Files("conf.d", bridgetest.Leaf{})
	key, err := os.ReadFile("conf.d/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Options{Path: "c.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	main, a, b := c.Servers[0], c.Servers[1], c.Servers[2]
	got := []string{c.AdminToken, c.MetricsToken, main.Env["K"], a.Env["K"], c.TLS.Cert, c.TLS.Key, b.TLS.CA, b.UpstreamAuth.ClientCredentials.Key}
	want := []string{"the-token-of-main", "the-token-below-it", "main", "below", "conf.d/cert.pem", "conf.d/key.pem", "conf.d/ca.pem", string(key)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Load gives %q, want %q", got, want)
	}
}

// A secret is warned of where it stands.
func TestHardeningIncludedSecrets(t *testing.T) {
	writeAll(t, map[string]string{"c.yaml": "include: [a.yaml, b.yaml]\n" + notebook, "a.yaml": "servers: {a: {command: x, args: [--token, s3cret]}}\n", "b.yaml": "admin_token: 0123456789abcdef\n"})
	for _, name := range []string{"c.yaml", "b.yaml", "a.yaml"} {
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := config.Load(config.Options{Path: "c.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range warnings {
			where, _, _ := strings.Cut(w.String(), ":")
			got = append(got, where)
		}
		want := map[string]string{"c.yaml": "", "b.yaml": "b.yaml", "a.yaml": "a.yaml b.yaml"}[name]
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("after chmod of %s: warned of %q, want %s", name, got, want)
		}
	}
}
