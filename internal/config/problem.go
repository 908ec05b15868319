package config

import (
	"cmp"
	"fmt"
	"slices"
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
	if p.line == 0 {
		return "", 0
	}
	return strings.TrimSuffix(p.Where, fmt.Sprintf(":%d", p.line)), p.line
}

// An Error contains all mistakes of a configuration, in the order of the file. Problems is
// never empty.
type Error struct {
	Problems []Problem
	// Files are those that were read, or looked for, as of [Config.Files].
	Files []string
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// A place is where a value was written, and its text before expansion, which may be shown.
type place struct {
	where string
	line  int
	text  string
}

// file returns the file of the place; empty for one that is in no file.
func (p place) file() string {
	file, _ := Problem{Where: p.where, line: p.line}.At()
	return file
}

// A report collects the mistakes that Load finds.
type report struct {
	errors, warnings []Problem
	places           map[string]place // of every value, by path; later layers override
	expanded         []string         // values of variables that may be secrets
	files            []string         // that were read
}

func (r *report) opened(path string) {
	if !slices.Contains(r.files, path) {
		r.files = append(r.files, path)
	}
}

func newReport() *report { return &report{places: make(map[string]place)} }

func (r *report) fail(at place, path, format string, args ...any) {
	r.errors = append(r.errors, problem(at, path, format, args...))
}

func (r *report) warn(at place, path, format string, args ...any) {
	r.warnings = append(r.warnings, problem(at, path, format, args...))
}

func problem(at place, path, format string, args ...any) Problem {
	return Problem{Where: at.where, Key: shown(path), Message: fmt.Sprintf(format, args...), line: at.line}
}

// find returns the place of path or, if the key is missing, of the nearest key above it.
func (r *report) find(path, fallback string) place {
	for p := path; p != ""; p = parent(p) {
		if at, ok := r.places[p]; ok {
			return at
		}
	}
	return place{where: fallback}
}

func (r *report) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	r.inOrder(r.errors)
	return &Error{Problems: r.errors, Files: slices.Clone(r.files)}
}

// inOrder sorts problems by their files, in the order in which these were read, and lines.
func (r *report) inOrder(ps []Problem) {
	rank := func(p Problem) int {
		file, _ := p.At()
		return slices.Index(r.files, file)
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.line, b.line))
	})
}

// delim separates the levels of a path. It is not a dot because server names,
// headers and methods contain dots.
const delim = "\x1f"

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + delim + name
}

func parent(path string) string {
	i := strings.LastIndex(path, delim)
	return path[:max(i, 0)]
}

// shown returns a path as people write it.
func shown(path string) string { return strings.ReplaceAll(path, delim, ".") }
