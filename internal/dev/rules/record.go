package rules

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// An Event is one line of the output of "go test -json" (go doc test2json).
type Event struct {
	Action     string
	Package    string
	ImportPath string // instead of Package for a build
	Test       string // empty for the whole package
	Elapsed    float64
	Output     string
}

// Events calls do for each event of a record, in order. For a line that is not a JSON
// object (other output of make or the go command), the event has Action "output" and no
// package.
func Events(r io.Reader, do func(Event) error) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := do(parseEvent(line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func parseEvent(line []byte) Event {
	var e Event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		return Event{Action: "output", Output: string(line)}
	}
	return e
}

// A test identifies a test in a record by its package and name.
type test struct{ pkg, name string }

// A Record has the results of all tests of one or more runs.
type Record struct {
	passed map[test]bool // in at least one run
	failed map[test]bool // in at least one run
}

// NewRecord returns an empty record.
func NewRecord() *Record {
	return &Record{passed: make(map[test]bool), failed: make(map[test]bool)}
}

// Read adds a run. A test counts as passed if it failed in no run, and passed in a run in
// which neither it nor one of its subtests was skipped.
//
// Read returns an error if r has no event of a test, because such a record is a mistake.
func (rec *Record) Read(r io.Reader) error {
	tests := 0
	passed, skipped := make(map[test]bool), make(map[test]bool)
	err := Events(r, func(e Event) error {
		if e.Test == "" {
			return nil
		}
		tests++
		switch e.Action {
		case "pass":
			passed[test{e.Package, e.Test}] = true
		case "fail":
			rec.failed[test{e.Package, e.Test}] = true
		case "skip":
			for name := e.Test; name != ""; name = parent(name) {
				skipped[test{e.Package, name}] = true
			}
		}
		return nil
	})
	for t := range passed {
		if !skipped[t] {
			rec.passed[t] = true
		}
	}
	if err == nil && tests == 0 {
		err = errors.New("the record has no tests")
	}
	return err
}

// parent returns the name of the test that ran a subtest, or "" for a top-level test.
func parent(name string) string {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)]
}

// Passed calls do with the name of every passed test.
func (rec *Record) Passed(do func(name string)) {
	for t := range rec.passed {
		if !rec.failed[t] {
			do(t.name)
		}
	}
}
