package rules

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A Watcher converts the events of a run to lines for people during the run: one line per
// package and skipped test, and the whole output of failed and skipped tests.
type Watcher struct {
	w       io.Writer
	tests   bool                      // also print a line per test and subtest
	output  map[test]*strings.Builder // the output of each unfinished test
	failed  map[string]bool           // packages and builds
	wrong   map[string]bool           // packages with a test that failed
	crashed map[string]bool           // packages in which the race detector failed
}

// detectorFailed begins a line of the race detector that says of itself that it can't go on.
// It does so now and then, with several hundred goroutines on a busy machine, and ends the
// process; a data race looks otherwise.
const detectorFailed = "ThreadSanitizer: CHECK failed"

// NewWatcher returns a Watcher that writes to w. With tests it also prints a line at the
// end of every test, for runs in which one package takes minutes.
func NewWatcher(w io.Writer, tests bool) *Watcher {
	return &Watcher{w: w, tests: tests, output: make(map[test]*strings.Builder), failed: make(map[string]bool), wrong: make(map[string]bool), crashed: make(map[string]bool)}
}

// Event processes the next event.
func (wa *Watcher) Event(e Event) error {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		return wa.keep(key, e.Output)
	case "build-output":
		_, err := io.WriteString(wa.w, e.Output)
		return err
	case "build-fail":
		wa.failed[e.ImportPath] = true
	case "pass", "fail", "skip":
		return wa.end(key, e)
	}
	return nil
}

// keep stores the output of a test or package until its end.
func (wa *Watcher) keep(key test, text string) error {
	if key == (test{}) {
		_, err := io.WriteString(wa.w, text)
		return err
	}
	if wa.output[key] == nil {
		wa.output[key] = new(strings.Builder)
	}
	wa.output[key].WriteString(text)
	if strings.HasPrefix(text, detectorFailed) {
		wa.crashed[key.pkg] = true
	}
	return nil
}

func (wa *Watcher) end(key test, e Event) error {
	defer delete(wa.output, key)
	if e.Action == "fail" {
		wa.failed[e.Package] = true
		wa.wrong[e.Package] = wa.wrong[e.Package] || e.Test != ""
	}
	if err := wa.replay(key, e.Action); err != nil {
		return err
	}
	if key.name == "" && e.Action == "fail" {
		if err := wa.unfinished(key.pkg); err != nil {
			return err
		}
	}
	if key.name != "" && e.Action != "skip" && !wa.tests {
		return nil
	}
	_, err := fmt.Fprintf(wa.w, "%s %s (%.1fs)\n", e.Action, strings.TrimSpace(e.Package+" "+e.Test), e.Elapsed)
	return err
}

// replay prints the stored output if the test failed, or was skipped with a reason.
func (wa *Watcher) replay(key test, action string) error {
	kept := wa.output[key]
	if kept == nil || action == "pass" || action == "skip" && key.name == "" {
		return nil
	}
	_, err := io.WriteString(wa.w, kept.String())
	return err
}

// unfinished prints the stored output of the tests of a package that did not end.
func (wa *Watcher) unfinished(pkg string) error {
	for key, kept := range wa.output {
		if key.pkg != pkg || key.name == "" {
			continue
		}
		if _, err := fmt.Fprintf(wa.w, "%s%s did not end\n", kept, key.name); err != nil {
			return err
		}
		delete(wa.output, key)
	}
	return nil
}

// TakeCrashed returns the packages of which nothing is known, because the race detector has
// failed in them and no test, and no longer counts them as failed.
func (wa *Watcher) TakeCrashed() []string {
	var out []string
	for _, pkg := range slices.Sorted(maps.Keys(wa.crashed)) {
		if !wa.wrong[pkg] {
			out = append(out, pkg)
			delete(wa.failed, pkg)
		}
	}
	return out
}

// Err returns an error with the names of failed packages and builds, or nil.
func (wa *Watcher) Err() error {
	if len(wa.failed) == 0 {
		return nil
	}
	return fmt.Errorf("failed: %s", strings.Join(slices.Sorted(maps.Keys(wa.failed)), ", "))
}
