package rules

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// head and tail are how many lines of the beginning and the end of a failed test's output
// WriteFailed prints: a test says first what is wrong, and at the end what was left.
const head, tail = 12, 30

// WriteFailed writes to w which tests of the run r failed, each with the beginning and the end of its output.
// Left out are tests that failed because a subtest did, and a package if one of its tests
// did. A test that did not end, as at a time-out, counts as failed.
func WriteFailed(w io.Writer, r io.Reader) error {
	output, failed := make(map[test][]string), make(map[test]string)
	err := Events(r, func(e Event) error {
		key := test{e.Package, e.Test}
		switch e.Action {
		case "run":
			failed[key] = unended
		case "output":
			if strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT: nothing of the test's
				break
			}
			output[key] = append(output[key], strings.TrimRight(e.Output, "\n"))
			if lines := output[key]; len(lines) > head+tail+1 {
				lines[head] = "[…]"
				output[key] = slices.Delete(lines, head+1, head+2)
			}
		case "fail":
			failed[key] = fmt.Sprintf("failed after %.1fs", e.Elapsed)
		case "pass", "skip":
			delete(failed, key)
			delete(output, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key := range maps.Clone(failed) {
		for name := key.name; name != ""; {
			name = parent(name)
			delete(failed, test{key.pkg, name})
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(failed), byName) {
		if _, err := fmt.Fprintf(w, "%s %s\n    %s\n", strings.TrimSpace(key.pkg+" "+key.name), failed[key], strings.Join(output[key], "\n    ")); err != nil {
			return err
		}
	}
	return nil
}

func byName(a, b test) int {
	return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
}
