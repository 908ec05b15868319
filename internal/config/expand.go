package config

import (
	"errors"
	"fmt"
	"strings"
)

// expand replaces ${VAR}, ${VAR:-default} and ${env:VAR} in one scalar; $${
// stands for a literal ${. It works on values that were parsed before, so
// that no variable can add a key or close a quote. The default is used when
// the variable is unset or empty, as in a shell.
func expand(s string, lookup func(string) (string, bool)) (string, error) {
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
		v, err := variable(s[i+2:i+end], lookup)
		if err != nil {
			return "", err
		}
		out.WriteString(v)
		s = s[i+end+1:]
	}
}

// variable evaluates what stood between the braces.
func variable(ref string, lookup func(string) (string, bool)) (string, error) {
	name, def, hasDefault := strings.Cut(strings.TrimPrefix(ref, "env:"), ":-")
	if strings.HasPrefix(name, "input:") {
		return "", errors.New("${input:…} asks the user of a desktop client; write an environment variable such as ${TOKEN}")
	}
	if !isVariable(name) {
		// What stands there is not repeated: it may be part of a password.
		return "", errors.New("what stands in ${…} is not the name of an environment variable; write $${ for a literal ${")
	}
	v, ok := lookup(name)
	if hasDefault && v == "" {
		return def, nil
	}
	if !ok {
		return "", fmt.Errorf("environment variable %s is not set; set it, or write ${%s:-default}", name, name)
	}
	return v, nil
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

// environment turns KEY=VALUE entries into a look-up.
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
