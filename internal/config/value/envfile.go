package value

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// maxEnvFile bounds a file of environment variables, in bytes.
const maxEnvFile = 1 << 20

// EnvFile returns the variables of a file of environment variables.
func (sc *Scope) EnvFile(path string) (map[string]string, error) {
	data, err := sc.Read(path, maxEnvFile)
	if err != nil {
		return nil, err
	}
	vars, line, err := parseEnv(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s, line %d: %v", path, line, err)
	}
	return vars, nil
}

var envName = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*`)

// parseEnv reads NAME=value lines in the syntax that docker, VS Code and shells have in
// common: # begins a comment at the start of a line or after a space, 'single quotes' are
// literal, "double quotes" have the escapes \n, \r, \t, \" and \\, and both may span lines.
// Variables are not expanded. line is the line of an error; errors contain no values.
func parseEnv(text string) (vars map[string]string, line int, err error) {
	vars = make(map[string]string)
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	for line = 1; text != ""; {
		text = strings.TrimLeft(text, " \t")
		if text == "" || text[0] == '\n' || text[0] == '#' {
			_, text, _ = strings.Cut(text, "\n")
			line++
			continue
		}
		m := envName.FindStringSubmatch(text)
		if m == nil {
			return nil, line, errors.New("want NAME=value, or # and a comment")
		}
		value, rest, err := envValue(text[len(m[0]):])
		if err != nil {
			return nil, line, err
		}
		line += strings.Count(text[:len(text)-len(rest)], "\n")
		vars[m[1]], text = value, rest
	}
	return vars, line, nil
}

// envValue reads a value and the rest of its line.
func envValue(text string) (value, rest string, err error) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		value, rest, _ = strings.Cut(text, "\n")
		if i := strings.Index(" "+value, " #"); i >= 0 {
			value = value[:max(i-1, 0)]
		}
		return strings.TrimSpace(value), rest, nil
	}
	value, rest, ok := quoted(text)
	if !ok {
		return "", "", fmt.Errorf("a value begins with %c and has no %c at its end", text[0], text[0])
	}
	tail, rest, _ := strings.Cut(rest, "\n")
	if tail = strings.TrimSpace(tail); tail != "" && tail[0] != '#' {
		return "", "", errors.New("something follows the closing quote; put all of the value into the quotes")
	}
	return value, rest, nil
}

var envEscapes = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`, `\$`, "$")

// quoted reads a quoted string at the start of text.
func quoted(text string) (value, rest string, ok bool) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '"':
			return envEscapes.Replace(text[1:i]), text[i+1:], true
		case text[i] == quote:
			return text[1:i], text[i+1:], true
		}
	}
	return "", "", false
}
