package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestParseEnv(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     map[string]string
	}{
		{"plain", "A=b\nC=d", map[string]string{"A": "b", "C": "d"}},
		{"spaces, export, empty", " export  A = b c \nB=\n\n", map[string]string{"A": "b c", "B": ""}},
		{"comments", "# no\nA=b # yes\nB=a#b\nC= # none\n", map[string]string{"A": "b", "B": "a#b", "C": ""}},
		{"quotes", `A='$b \n #' # c` + "\n" + `B="a\nb \"c\" \\ $d"`, map[string]string{"A": `$b \n #`, "B": "a\nb \"c\" \\ $d"}},
		{"over lines", "A=\"b\nc\"\nD='e\nf'\nG=h", map[string]string{"A": "b\nc", "D": "e\nf", "G": "h"}},
		{"Windows", "\ufeffA=b\r\nB=\"c\"\r\n", map[string]string{"A": "b", "B": "c"}},
		{"an equals sign, an apostrophe", "A=b=c==\nB=it's", map[string]string{"A": "b=c==", "B": "it's"}},
		{"the last counts", "A=b\nA=c", map[string]string{"A": "c"}},
		{"nothing", "", map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, line, err := parseEnv(tt.in)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("parseEnv(%q) = %q, line %d, %v, want %q", tt.in, got, line, err, tt.want)
			}
		})
	}
}

// A command gets what the file has, and env wins over it. Mistakes name the line and
// repeat no value.
func TestEnvFile(t *testing.T) {
	const in = "servers:\n  a: {command: x, env: {A: mine}, env_file: vars}\n  b: {command: x, disabled: true, env_file: none}\n"
	path := write(t, in)
	for _, tt := range []struct{ name, vars, err string }{
		{"good", "A=file\nB=s3cret\n", ""},
		{"no name", "A=s3cret\n\n# c\ns3cret\n", "c.yaml:2: servers.a.env_file: vars, line 4: want NAME=value, or # and a comment"},
		{"open quote", "A=\"b\nc\"\nB=\"s3cret\n", `c.yaml:2: servers.a.env_file: vars, line 3: a value begins with " and has no " at its end`},
		{"after the quote", "A='b'\nB='s3'cret\n", "c.yaml:2: servers.a.env_file: vars, line 2: something follows the closing quote; put all of the value into the quotes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile("vars", []byte(tt.vars), 0o600); err != nil {
				t.Fatal(err)
			}
			c, _, err := Load(Options{Path: path})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("Load = %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := c.Servers[0].Env, map[string]string{"A": "mine", "B": "s3cret"}; !reflect.DeepEqual(got, want) {
				t.Errorf("env = %q, want %q", got, want)
			}
		})
	}
	if err := os.Remove("vars"); err != nil {
		t.Fatal(err)
	}
	const missing = "c.yaml:2: servers.a.env_file: can't be read: open vars: no such file or directory"
	if _, _, err := Load(Options{Path: path}); err == nil || err.Error() != missing {
		t.Errorf("Load = %v, want %s", err, missing)
	}
	const ofURL = "c.yaml:1: servers.a.env_file: belongs to servers with command; this one has url, so remove it"
	if _, _, err := Load(Options{Path: write(t, "servers: {a: {url: 'http://h', env_file: x}}")}); err == nil || err.Error() != ofURL {
		t.Errorf("Load = %v, want %s", err, ofURL)
	}
}

func FuzzParseEnv(f *testing.F) {
	for _, s := range []string{"A=b", "A=\"", "A='b'c", "export A=\n#", "A=\\\"\n\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		vars, line, err := parseEnv(s)
		if lines := strings.Count(s, "\n") + 2; line < 1 || line > lines {
			t.Errorf("parseEnv(%q) ends on line %d of %d", s, line, lines)
		}
		if (vars == nil) != (err != nil) {
			t.Errorf("parseEnv(%q) = %q, %v", s, vars, err)
		}
	})
}
