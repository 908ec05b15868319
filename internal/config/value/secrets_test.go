package value_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// Whatever of the configuration grants access is known as secret, in each part that
// can stand alone; what doesn't is not, or logs would say nothing.
func TestHardeningSecretsAreKnown(t *testing.T) {
	file := `
listen: ${LISTEN}
state_keys: [a-state-key-of-32-characters]
limits: {sessions: '${COUNT}'}
servers:
  web:
    url: https://h.example/mcp?api_key=query-secret&flag-secret
    headers:
      Authorization: Bearer bearer-secret
      X-Basic: Basic YWRhOnBhc3Mtc2VjcmV0
      Cookie: session=cookie-secret; theme=dark-theme
      X-Plain: plain-secret
  child:
    command: ${HOME}/bin/server
    args: [--token, token-secret, --password=assigned-secret, 'postgres://ada-lovelace:url-secret@db/x', 'a-${TEAM}', --header, 'Authorization: Bearer header-secret']
    env_file: ENVFILE
    env: {OF_FILE: 'x-${file:SECRETFILE}', OF_INPUT: 'x-${input:key}', MODE: env-secret, DSN: 'redis://:dsn-secret@cache/0'}
`
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "file-secret\n", "env": "INNER=envfile-secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file = strings.NewReplacer("ENVFILE", filepath.Join(dir, "env"), "SECRETFILE", filepath.Join(dir, "secret")).Replace(file)
	environ := []string{hostfile.InputVariable("key") + "=input-secret", "HOME=/home/ada", "LISTEN=127.0.0.1:2526", "COUNT=100000", "TEAM=variable-secret"}
	c, _, err := config.Load(config.Options{Path: write(t, file), Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Secrets()
	for _, want := range []string{
		"a-state-key-of-32-characters", "query-secret", "flag-secret", "bearer-secret", "YWRhOnBhc3Mtc2VjcmV0", "ada:pass-secret",
		"pass-secret", "cookie-secret", "plain-secret", "token-secret", "assigned-secret", "ada-lovelace", "url-secret",
		"ada-lovelace:url-secret", "variable-secret", "header-secret", "env-secret", "dsn-secret",
		"file-secret", "input-secret", "envfile-secret",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("Secrets() lacks %q", want)
		}
	}
	for _, harmless := range []string{"/home/ada", "127.0.0.1:2526", "100000", "Bearer bearer-secret", "--token"} {
		if slices.Contains(got, harmless) {
			t.Errorf("Secrets() holds %q", harmless)
		}
	}
}

// ${file:…} is a secret: its value appears nowhere, and errors name the file.
func TestFileSecrets(t *testing.T) {
	const in = "servers: {a: {command: x, args: ['--k=${file:key}', '${file:%s}'], env: {K: 'Bearer ${file:~/key}'}}}"
	path := write(t, "")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"key": "s3cret\n", "crlf": "s3cret\r\n", "two": "s3\ncret\n\n", "zero": "s3cret\x00", "large": strings.Repeat("s3cret\n", 10_000), "empty": ""}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const at = "c.yaml:1: servers.a.args.1: "
	for _, tt := range []struct{ file, want, err string }{
		{"key", "s3cret", ""},
		{"crlf", "s3cret", ""},
		{"two", "s3\ncret\n", ""},
		{"empty", "", ""},
		{here + "/key", "s3cret", ""},
		{"none", "", at + "can't be read: open none: no such file or directory; correct its path, which begins in the folder of the configuration, or make it"},
		{"zero", "", at + "zero contains a zero byte, which no value can have"},
		{"large", "", at + "large is larger than 64KiB"},
		{"", "", at + "${file:} names no file; write ${file:/run/secrets/token}"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(strings.Replace(in, "%s", tt.file, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			c, _, err := config.Load(config.Options{Path: path, Environ: []string{"HOME=" + here}})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("Load = %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := &c.Servers[0]
			if s.Args[0] != "--k=s3cret" || s.Args[1] != tt.want || s.Env["K"] != "Bearer s3cret" {
				t.Errorf("got %q, %q, want %q", s.Args, s.Env, tt.want)
			}
			if got := s.Target(); strings.Contains(got, "s3cret") || strings.Contains(got, "s3\n") {
				t.Errorf("Target() = %q repeats a secret", got)
			}
		})
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
