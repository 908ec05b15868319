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

	line int // orders problems of one file; 0 elsewhere
}

func (p Problem) String() string {
	if p.Key == "" || strings.HasPrefix(p.Where, "--") { // a flag says which key
		return p.Where + ": " + p.Message
	}
	return p.Where + ": " + p.Key + ": " + p.Message
}

// At returns the file of a mistake and its line; zero values for one that is in no file.
func (p Problem) At() (file string, line int) {
	return Place{Where: p.Where, Line: p.line}.File(), p.line
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
	Where string // as in Problem
	Line  int    // 0 for a place that is in no file
	Text  string
}

// InFile returns the place of a line of a file.
func InFile(path string, line int) Place {
	return Place{Where: fmt.Sprintf("%s:%d", path, line), Line: line}
}

// File returns the file of the place; empty for one that is in no file.
func (p Place) File() string {
	if p.Line == 0 {
		return ""
	}
	return strings.TrimSuffix(p.Where, fmt.Sprintf(":%d", p.Line))
}
