package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

// A scope resolves references ${…}.
type scope struct {
	lookup func(string) (string, bool) // environment variables
	dir    string                      // the base of relative paths in ${file:…}
	// note is called with each value that replaces a reference, and the name of its
	// variable: "" for a file. It may be nil.
	note func(variable, value string)
	// opened is called with the path of each file that is read. It may be nil.
	opened func(path string)
}

// expand replaces ${VAR}, ${VAR:-default}, ${env:VAR} and ${file:PATH} in a scalar; $${ is a
// literal ${. It expands values after parsing, so that a variable can't add a key or close a
// quote. The default is used if the variable is unset or empty, as in a shell.
func (sc *scope) expand(s string) (string, error) {
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i])
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", errors.New("${ has no closing }; write $${ for a literal ${")
		}
		v, err := sc.value(s[i+2 : i+end])
		if err != nil {
			return "", err
		}
		out.WriteString(v)
		s = s[i+end+1:]
	}
}

// value evaluates the text between the braces.
func (sc *scope) value(ref string) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		return sc.secret(path)
	}
	if id, ok := strings.CutPrefix(ref, "input:"); ok {
		return sc.input(id)
	}
	if kind, _, ok := strings.Cut(ref, ":"); ok && (kind == "command" || kind == "config") {
		return "", fmt.Errorf("only VS Code expands ${%s:…}; write the value, or an environment variable such as ${TOKEN}", kind)
	}
	name, def, hasDefault := strings.Cut(strings.TrimPrefix(ref, "env:"), ":-")
	if !isVariable(name) {
		// The error does not repeat the text, which may be part of a password.
		return "", errors.New("the text in ${…} is not the name of an environment variable; write $${ for a literal ${")
	}
	v, ok := sc.lookup(name)
	if hasDefault && v == "" {
		return def, nil
	}
	if !ok {
		return "", fmt.Errorf("environment variable %s is not set; set it, or write ${%s:-default}", name, name)
	}
	return sc.noted(name, v), nil
}

func (sc *scope) noted(variable, value string) string {
	if sc.note != nil {
		sc.note(variable, value)
	}
	return value
}

// input returns the value of an input for which a desktop client would ask the user.
func (sc *scope) input(id string) (string, error) {
	name := hosts.InputVariable(id)
	v, ok := sc.lookup(name)
	if !ok {
		return "", fmt.Errorf("desktop clients ask the user for ${input:…}; set the environment variable %s instead", name)
	}
	return sc.noted(name, v), nil
}

// maxSecret bounds the size of a file of ${file:…}, in bytes.
const maxSecret = 64 << 10

// secret reads a file, without the newline at its end, which editors and Docker add. Errors
// contain the name of the file, and never its content.
func (sc *scope) secret(path string) (string, error) {
	path = sc.path(path)
	if path == "" {
		return "", errors.New("${file:} names no file; write ${file:/run/secrets/token}")
	}
	data, err := sc.read(path, maxSecret)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", fmt.Errorf("%s contains a zero byte, which no value can have", path)
	}
	secret, ok := strings.CutSuffix(string(data), "\n")
	if ok {
		secret = strings.TrimSuffix(secret, "\r")
	}
	return sc.noted("", secret), nil
}

// path resolves a path of the configuration: ~/ and relative paths.
func (sc *scope) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		for _, home := range []string{"HOME", "USERPROFILE"} {
			if dir, set := sc.lookup(home); set {
				return filepath.Join(dir, rest)
			}
		}
	}
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(sc.dir, name)
}

// read reads a file of at most limit bytes.
func (sc *scope) read(path string, limit int64) ([]byte, error) {
	if sc.opened != nil {
		sc.opened(path)
	}
	return readBounded(path, limit)
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("can't be read: %w", err)
	}
	defer func() { _ = f.Close() }() // read-only
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("can't be read: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %s", path, sizeText(limit))
	}
	return data, nil
}

func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// environment returns a function that looks up KEY=VALUE entries.
func environment(environ []string) func(string) (string, bool) {
	vars := make(map[string]string, len(environ))
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok {
			vars[k] = v
		}
	}
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}
