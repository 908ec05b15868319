package rules

import (
	"fmt"
	"io"
	"slices"
)

// A Report is the comparison of a list with a record.
type Report struct {
	Rules   []Rule
	Tests   map[string][]string // the names of the passed tests, by rule id, sorted
	Unknown []string            // ids in names of passed tests that are not in the list, sorted
}

// Judge compares a list with a record.
func Judge(list []Rule, rec *Record) *Report {
	r := &Report{Rules: list, Tests: make(map[string][]string)}
	known := make(map[string]bool)
	for _, rule := range list {
		known[rule.ID] = true
	}
	rec.Passed(func(name string) {
		for _, id := range IDs(name) {
			if !known[id] {
				r.Unknown = append(r.Unknown, id)
			} else if !slices.Contains(r.Tests[id], name) {
				r.Tests[id] = append(r.Tests[id], name)
			}
		}
	})
	slices.Sort(r.Unknown)
	r.Unknown = slices.Compact(r.Unknown)
	for _, names := range r.Tests {
		slices.Sort(names)
	}
	return r
}

// Missing returns the rules that are due and that no passed test names.
func (r *Report) Missing() []Rule {
	return r.pick(func(rule Rule, named bool) bool { return rule.Due && !named })
}

// Open returns the rules that are not due and that no passed test names.
func (r *Report) Open() []Rule {
	return r.pick(func(rule Rule, named bool) bool { return !rule.Due && !named })
}

// Early returns the rules that passed tests name, but that are open in the list.
func (r *Report) Early() []Rule {
	return r.pick(func(rule Rule, named bool) bool { return !rule.Due && named })
}

func (r *Report) pick(want func(rule Rule, named bool) bool) []Rule {
	var picked []Rule
	for _, rule := range r.Rules {
		if want(rule, len(r.Tests[rule.ID]) > 0) {
			picked = append(picked, rule)
		}
	}
	return picked
}

// Print writes the report for people. With verbose it also lists the tests of each rule.
func (r *Report) Print(w io.Writer, verbose bool) {
	if verbose {
		for _, rule := range r.Rules {
			for _, name := range r.Tests[rule.ID] {
				fmt.Fprintf(w, "%-7s %s\n", rule.ID, name)
			}
		}
	}
	for _, rule := range r.Open() {
		fmt.Fprintf(w, "open    %-7s %s\n", rule.ID, rule.Reason)
	}
	for _, rule := range r.Early() {
		fmt.Fprintf(w, "early   %-7s a passed test names it, the list has it as open: %s\n", rule.ID, rule.Reason)
	}
	for _, id := range r.Unknown {
		fmt.Fprintf(w, "unknown %-7s a passed test names it, the list does not have it\n", id)
	}
	for _, rule := range r.Missing() {
		fmt.Fprintf(w, "MISSING %-7s %s\n", rule.ID, rule.Summary)
	}
	due := len(r.pick(func(rule Rule, _ bool) bool { return rule.Due }))
	named := len(r.pick(func(_ Rule, named bool) bool { return named }))
	fmt.Fprintf(w, "rules: %d of %d named by a passed test; %d due, %d of them missing\n",
		named, len(r.Rules), due, len(r.Missing()))
}
