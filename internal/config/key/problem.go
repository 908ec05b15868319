package key

import (
	"fmt"
	"strings"
)

// A Problem is one mistake, and how to correct it. It never contains a value of a variable,
// a header or an environment entry.
type Problem struct {
	// Where is file:line, the name of an environment variable, a flag, or
	// "command line".
	Where string
	// Key is the dotted path of the key; empty for a mistake of the whole file.
	Key     string
	Message string

	line, column int // line orders problems of one file; 0 elsewhere
}

func (p Problem) String() string {
	if p.Key == "" || strings.HasPrefix(p.Where, "--") { // a flag says which key
		return p.Where + ": " + p.Message
	}
	return p.Where + ": " + p.Key + ": " + p.Message
}

// At returns the file of a mistake and its line; zero values for one that is in no file.
func (p Problem) At() (file string, line int) {
	if p.line == 0 {
		return "", 0
	}
	return strings.TrimSuffix(p.Where, fmt.Sprintf(":%d", p.line)), p.line
}

// Column returns the column of the mistake in its line, from 1; zero if it is not known.
func (p Problem) Column() int { return p.column }

// Parts returns what is wrong, and what to do next, which may be empty: messages have a
// semicolon between them.
func (p Problem) Parts() (what, next string) { return Parts(p.Message) }

// Parts is [Problem.Parts] for any message. A semicolon in a quoted text divides nothing.
func Parts(message string) (what, next string) {
	quoted := false
	for i := 0; i < len(message); i++ {
		switch {
		case message[i] == '\\' && quoted:
			i++
		case message[i] == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(message[i:], "; "):
			return message[:i], message[i+2:]
		}
	}
	return message, ""
}

// An Error contains all mistakes of a configuration, in the order of the file. Problems is
// never empty.
type Error struct {
	Problems []Problem
	// Files are those that were read, or looked for.
	Files []string
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// A Place is where a value was written, and its text before expansion, which may be shown.
type Place struct {
	Source string // the file, or what Problem has as its Where
	Line   int    // 0 for a place that is in no file
	Column int    // in the line, from 1; 0 if it is not known
	Text   string
}

// InFile returns the place of a line of a file.
func InFile(path string, line int) Place {
	return Place{Source: path, Line: line}
}

// Where returns the place as [Problem] has it.
func (p Place) Where() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d", p.Source, p.Line)
}

// File returns the file of the place; empty for one that is in no file.
func (p Place) File() string {
	if p.Line == 0 {
		return ""
	}
	return p.Source
}
