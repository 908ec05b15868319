package server_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

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
			c, _, err := config.Load(config.Options{Path: path})
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
	const missing = "c.yaml:2: servers.a.env_file: can't be read: open vars: no such file or directory; correct its path, which begins in the folder of the configuration, or make it"
	if _, _, err := config.Load(config.Options{Path: path}); err == nil || err.Error() != missing {
		t.Errorf("Load = %v, want %s", err, missing)
	}
	const ofURL = "c.yaml:1: servers.a.env_file: belongs to servers with command; this one has url, so remove it"
	if _, _, err := config.Load(config.Options{Path: write(t, "servers: {a: {url: 'http://h', env_file: x}}")}); err == nil || err.Error() != ofURL {
		t.Errorf("Load = %v, want %s", err, ofURL)
	}
}
