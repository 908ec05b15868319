package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	c, _, err := Load(Options{Path: write(t, file), Environ: environ})
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
