package key

import (
	"cmp"
	"fmt"
	"slices"
)

// A Report collects the mistakes of one configuration, and where its values were written.
type Report struct {
	Errors, Warnings []Problem
	// Places has the place of every value, by path; later layers override.
	Places map[string]Place
	// Expanded has the values of variables that may be secrets.
	Expanded []string
	// Variables has the names of the variables that values refer to.
	Variables []string
	// FromFiles are the values that refer to files, but for those of disabled servers.
	FromFiles []FromFile
	// Files are those that were read, or looked for.
	Files []string
	// Stop is closed when files are to be read no more. It may be nil.
	Stop <-chan struct{}

	fallback string          // where it is what was written nowhere
	opened   map[string]int  // the places of Files in their order
	mistaken map[string]bool // the paths of values with mistakes, and those above them
}

// A FromFile is a value at a path which is in a file.
type FromFile struct{ Path, File string }

// NewReport returns an empty report. Mistakes without a better place have fallback as theirs.
func NewReport(fallback string) *Report {
	return &Report{
		Places: make(map[string]Place), fallback: fallback,
		opened: make(map[string]int), mistaken: make(map[string]bool),
	}
}

// Opened adds a file that is read.
func (r *Report) Opened(path string) {
	if _, known := r.opened[path]; !known {
		r.opened[path] = len(r.Files)
		r.Files = append(r.Files, path)
	}
}

// InFile reports whether the value at a path is on a line of a file.
func (r *Report) InFile(path string) bool { return r.find(path).Line > 0 }

// Fail adds a mistake of the value at a path.
func (r *Report) Fail(path, format string, args ...any) {
	r.FailAt(r.find(path), path, format, args...)
}

// FailAt adds a mistake at a place.
func (r *Report) FailAt(at Place, path, format string, args ...any) {
	r.Errors = append(r.Errors, problem(at, path, format, args...))
	for p := path; p != "" && !r.mistaken[p]; p = Parent(p) {
		r.mistaken[p] = true
	}
}

// Warn adds a warning of the value at a path.
func (r *Report) Warn(path, format string, args ...any) {
	r.WarnAt(r.find(path), path, format, args...)
}

// WarnAt adds a warning at a place.
func (r *Report) WarnAt(at Place, path, format string, args ...any) {
	r.Warnings = append(r.Warnings, problem(at, path, format, args...))
}

func problem(at Place, path, format string, args ...any) Problem {
	return Problem{Where: at.Where(), Key: Shown(path), Message: fmt.Sprintf(format, args...), line: at.Line, column: at.Column}
}

// find returns the place of path or, if the key is missing, of the nearest key above it.
func (r *Report) find(path string) Place {
	for p := path; p != ""; p = Parent(p) {
		if at, ok := r.Places[p]; ok {
			return at
		}
	}
	return Place{Source: r.fallback}
}

// Written reports whether a value stands at path.
func (r *Report) Written(path string) bool {
	_, ok := r.Places[path]
	return ok
}

// Mistaken reports whether the value at path, or one below it, has a mistake.
func (r *Report) Mistaken(path string) bool { return r.mistaken[path] }

// Err returns an [*Error] with the mistakes in order, or nil if there are none.
func (r *Report) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	r.sort(r.Errors)
	return &Error{Problems: r.Errors, Files: slices.Clone(r.Files)}
}

// Sorted returns the warnings in order.
func (r *Report) Sorted() []Problem {
	r.sort(r.Warnings)
	return r.Warnings
}

// sort orders problems by their files, in the order in which these were read, and lines.
func (r *Report) sort(ps []Problem) {
	rank := func(p Problem) int {
		file, _ := p.At()
		if i, known := r.opened[file]; known {
			return i
		}
		return -1
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.line, b.line))
	})
}
