package value

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// A Scope resolves references ${…}.
type Scope struct {
	Lookup func(string) (string, bool) // environment variables
	Dir    string                      // the base of relative paths in ${file:…}
	// Note is called with each value that replaces a reference, and the name of its
	// variable: "" for a file. It may be nil.
	Note func(variable, value string)
	// Opened is called with the path of each file that is read. It may be nil.
	Opened func(path string)
	// Stop is closed when files are to be read no more. It may be nil.
	Stop <-chan struct{}
}

// ScopeOf returns the scope of a file of the configuration, with the variables of environ. Files
// that are read are noted in rep.
func ScopeOf(file string, environ []string, rep *key.Report) *Scope {
	return &Scope{Lookup: Environ(environ), Dir: filepath.Dir(file), Opened: rep.Opened, Stop: rep.Stop}
}

// Expand replaces ${VAR}, ${VAR:-default}, ${env:VAR} and ${file:PATH} in a scalar; $${ is a
// literal ${. It expands values after parsing, so that a variable can't add a key or close a
// quote. The default is used if the variable is unset or empty, as in a shell.
func (sc *Scope) Expand(s string) (string, error) {
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
func (sc *Scope) value(ref string) (string, error) {
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
	v, ok := sc.Lookup(name)
	if hasDefault && v == "" {
		return def, nil
	}
	if !ok {
		return "", fmt.Errorf("environment variable %s is not set; set it, or write ${%s:-default}", name, name)
	}
	return sc.noted(name, v), nil
}

func (sc *Scope) noted(variable, value string) string {
	if sc.Note != nil {
		sc.Note(variable, value)
	}
	return value
}

// input returns the value of an input for which a desktop client would ask the user.
func (sc *Scope) input(id string) (string, error) {
	name := hostfile.InputVariable(id)
	v, ok := sc.Lookup(name)
	if !ok {
		return "", fmt.Errorf("desktop clients ask the user for ${input:…}; set the environment variable %s instead", name)
	}
	return sc.noted(name, v), nil
}

// maxSecret bounds the size of a file of ${file:…}, in bytes.
const maxSecret = 64 << 10

// secret reads a file, without the newline at its end, which editors and Docker add. Errors
// contain the name of the file, and never its content.
func (sc *Scope) secret(path string) (string, error) {
	path = sc.Path(path)
	if path == "" {
		return "", errors.New("${file:} names no file; write ${file:/run/secrets/token}")
	}
	data, err := sc.Read(path, maxSecret)
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

// Path resolves a path of the configuration: ~/ and relative paths.
func (sc *Scope) Path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		for _, home := range []string{"HOME", "USERPROFILE"} {
			if dir, set := sc.Lookup(home); set {
				return filepath.Join(dir, rest)
			}
		}
	}
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(sc.Dir, name)
}

// MissingFile returns what to do about an error of opening a file that a configuration names; empty
// if it is there.
func MissingFile(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "; correct its path, which begins in the folder of the configuration, or make it"
	}
	return ""
}

// Read reads a file of at most limit bytes.
func (sc *Scope) Read(path string, limit int64) ([]byte, error) {
	if sc.Opened != nil {
		sc.Opened(path)
	}
	data, err := ReadFile(path, limit, false, sc.Stop)
	if errors.As(err, new(*fs.PathError)) {
		err = fmt.Errorf("can't be read: %w%s", err, MissingFile(err))
	}
	return data, err
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

// Environ returns a function that looks up KEY=VALUE entries.
func Environ(environ []string) func(string) (string, bool) {
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

// PathOf resolves a path that is the value of a key: it is relative to the file that has the
// key.
func (sc *Scope) PathOf(rep *key.Report, path, name string) string {
	of := *sc
	if file := rep.Places[path].File(); file != "" {
		of.Dir = filepath.Dir(file)
	}
	return of.Path(name)
}

// Resolve makes paths that are values of the keys below a path ones that can be opened.
func (sc *Scope) Resolve(rep *key.Report, path string, names map[string]*string) {
	for below, name := range names {
		*name = sc.PathOf(rep, key.Join(path, below), *name)
	}
}
