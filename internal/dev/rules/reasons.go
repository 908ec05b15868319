package rules

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Bounds of WriteReasons: lines in all, lines that go on with a test's own line, and
// characters of a line.
const (
	reasonLines  = 40
	reasonMore   = 3
	reasonLength = 300
)

// unended is how a test failed that has no end in the record, as at a time-out.
const unended = "did not end"

var (
	// reason begins what a test itself says, or how a process ended.
	reason = regexp.MustCompile(`^( {4}[^ :]+\.go:\d+: |panic: |fatal error: |FAIL: |WARNING: DATA RACE)`)
	// processLog begins a line that a process has written.
	processLog = regexp.MustCompile(`^\s*(\{"time":|time=\d|\d{4}[-/]\d\d[-/]\d\d)`)
)

// A lament is what a failed test says of itself: how it failed, and items of lines.
type lament struct {
	how   string
	items [][]string
	open  bool // lines that follow belong to the last item
}

func (l *lament) add(line string) {
	switch {
	case reason.MatchString(line):
		l.items = append(l.items, []string{shorten(line)})
		l.open = !strings.HasSuffix(line, "log ends:")
	case l.open && strings.HasPrefix(line, "        ") && !processLog.MatchString(line):
		if last := &l.items[len(l.items)-1]; len(*last) <= reasonMore && strings.TrimSpace(line) != "" {
			*last = append(*last, shorten(line))
		}
	default:
		l.open = false
	}
}

func shorten(line string) string {
	if runes := []rune(line); len(runes) > reasonLength {
		return string(runes[:reasonLength-1]) + "…"
	}
	return line
}

// lines returns at most n lines: a test says first what is wrong.
func (l *lament) lines(n int) []string {
	lines := slices.Concat(l.items...)
	return lines[:min(len(lines), max(n, 0))]
}

// WriteReasons writes to w, for each test that failed in the runs, its name and what it says
// of itself, without the logs of processes: few lines, for whoever sees only the end of a
// long output. Left out are tests that say nothing and failed because a subtest did.
func WriteReasons(w io.Writer, runs ...io.Reader) error {
	failed := make(map[test]*lament)
	for _, r := range runs {
		if err := readLaments(r, failed); err != nil {
			return err
		}
	}
	for key := range maps.Clone(failed) {
		for name := key.name; name != ""; {
			name = parent(name)
			if up := (test{key.pkg, name}); failed[up] != nil && len(failed[up].items) == 0 {
				delete(failed, up)
			}
		}
	}
	out, left := bufio.NewWriter(w), reasonLines
	for i, key := range slices.SortedFunc(maps.Keys(failed), byName) {
		tests := len(failed) - i
		if left == 1 && tests > 1 {
			fmt.Fprintf(out, "[… and %d more]\n", tests)
			break
		}
		fmt.Fprintln(out, strings.TrimSpace(key.pkg+" "+key.name), failed[key].how)
		left--
		lines := failed[key].lines(min(left/tests, left-(tests-1)))
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		left -= len(lines)
	}
	return out.Flush()
}

// readLaments adds to failed the tests, packages and builds of a run that failed or did not end.
func readLaments(r io.Reader, failed map[test]*lament) error {
	running := make(map[test]*lament)
	err := Events(r, func(e Event) error {
		key := test{cmp.Or(e.Package, e.ImportPath), e.Test}
		if key == (test{}) {
			return nil // other output of make or the go command
		}
		l := running[key]
		if l == nil {
			l = &lament{how: unended}
			running[key] = l
		}
		switch e.Action {
		case "output":
			l.add(strings.TrimRight(e.Output, "\n"))
		case "build-output":
			l.items = append(l.items, []string{shorten("    " + strings.TrimRight(e.Output, "\n"))})
		case "build-fail":
			l.how = "does not build"
		case "fail":
			l.how = fmt.Sprintf("failed after %.1fs", e.Elapsed)
		case "pass", "skip":
			delete(running, key)
		}
		return nil
	})
	for key, l := range running {
		if key.name != "" || l.how != unended {
			failed[key] = l
		}
	}
	return err
}
