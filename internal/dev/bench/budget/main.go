// Command budget answers which benchmarks are over their budgets. It copies what
// `go test -bench` prints to standard output, and then lists the results that have
// both a ratio and an at-most among their metrics. It fails if one is over.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

// A result is what one benchmark says of its budget.
type result struct {
	name        string
	ratio, most float64
}

func run(in io.Reader, out io.Writer) error {
	var all []result
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		if r, ok := parse(lines.Text()); ok {
			all = append(all, r)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the benchmarks' output: %w", err)
	}
	return judge(all, out)
}

// parse reads a line of results: a name, a count, then pairs of value and unit.
func parse(line string) (r result, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
		return r, false
	}
	r.name = fields[0]
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		switch {
		case err != nil:
			return r, false
		case fields[i+1] == "ratio":
			r.ratio = v
		case fields[i+1] == "at-most":
			r.most = v
		}
	}
	return r, r.most > 0
}

func judge(all []result, out io.Writer) error {
	over := 0
	for _, r := range all {
		state := "under"
		if r.ratio > r.most {
			state = "OVER"
			over++
		}
		fmt.Fprintf(out, "budget: %s %.2f×, at most %.2f×: %s\n", r.name, r.ratio, r.most, state)
	}
	if over > 0 {
		return fmt.Errorf("%d of %d ratios are over their budgets", over, len(all))
	}
	return nil
}
