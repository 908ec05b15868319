package rules

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Event is one line of what "go test -json" prints (go doc test2json).
type Event struct {
	Action     string
	Package    string
	ImportPath string // instead of Package where a build is meant
	Test       string // empty where the whole package is meant
	Elapsed    float64
	Output     string
}

// Events calls do for each event of a record, in order. Lines that are not
// JSON objects (what make or the go command print in between) are given as
// an event of Action "output" with no package.
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

// test names a test within a record: the same function in two packages is two.
type test struct{ pkg, name string }

// Record is what is known of every test of one or more runs.
type Record struct {
	passed map[test]bool // in at least one run
	failed map[test]bool // in at least one run
}

// NewRecord returns an empty record.
func NewRecord() *Record {
	return &Record{passed: make(map[test]bool), failed: make(map[test]bool)}
}

// Read adds a run. A test counts as passed if it passed in some run in which
// neither it nor a test within it was skipped, and failed in none.
//
// Read returns an error if r holds no event of a test: an empty record proves
// nothing, and is a mistake in whoever wrote it.
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
		err = errors.New("the record holds no test")
	}
	return err
}

// parent returns the name of the test that ran a subtest, "" for a top one.
func parent(name string) string {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)]
}

// Passed calls do with the name of every test that counts as passed.
func (rec *Record) Passed(do func(name string)) {
	for t := range rec.passed {
		if !rec.failed[t] {
			do(t.name)
		}
	}
}
