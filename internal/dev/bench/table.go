//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A row is one measured figure and its budget.
type row struct {
	what   string
	got    float64
	unit   string // "×" for ratios
	most   float64
	goal   float64 // with most zero: there is no budget
	detail string  // the absolute figures behind it
}

// A table is all that was measured, in order.
type table struct{ rows []row }

func (t *table) add(r row) { t.rows = append(t.rows, r) }

func (r row) over() bool { return r.most > 0 && r.got > r.most }

func (r row) state() string {
	switch {
	case r.most == 0:
		return ""
	case r.over():
		return "OVER"
	case r.got > r.goal:
		return "ok"
	}
	return "goal"
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tmeasured\tat most\tgoal\t\tabsolute")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.format(r.got), r.format(r.most), r.format(r.goal), r.state(), r.detail)
	}
	_ = tw.Flush() // standard output
}

func (r row) format(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%s", v, r.unit)
}

// verdict returns an error that names what is over its budget.
func (t *table) verdict() error {
	var errs []error
	for _, r := range t.rows {
		if r.over() {
			errs = append(errs, fmt.Errorf("%s: %s is over the budget of %s", r.what, r.format(r.got), r.format(r.most)))
		}
	}
	return errors.Join(errs...)
}

// median returns the middle of v, which it sorts. It wants at least one.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// pairs collects what two parties took in each round.
type pairs struct{ ours, theirs, ratios []float64 }

func (p *pairs) add(ours, theirs float64) {
	p.ours, p.theirs = append(p.ours, ours), append(p.theirs, theirs)
	p.ratios = append(p.ratios, ours/theirs)
}

func (p *pairs) ratio() float64 { return median(p.ratios) }

// detail shows both sides' medians, in microseconds.
func (p *pairs) detail(theirs string) string {
	return fmt.Sprintf("%.1f µs, %s %.1f µs", median(p.ours)/1e3, theirs, median(p.theirs)/1e3)
}
