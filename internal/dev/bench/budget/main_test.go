package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const (
		under = "BenchmarkLookup-2   \t 9\t 2.000 at-most\t 1.250 ratio\n"
		over  = "BenchmarkLookup/many-2 \t 9\t 2.000 at-most\t 2.001 ratio\t 0 B/op\n"
		plain = "BenchmarkOther-2 \t 100\t 12.5 ns/op\nok  \texample\t1.2s\n"
	)
	for _, tt := range []struct{ name, in, says, err string }{
		{"under", plain + under, "budget: BenchmarkLookup-2 1.25×, at most 2.00×: under\n", ""},
		{"over", under + plain + over, "budget: BenchmarkLookup/many-2 2.00×, at most 2.00×: OVER\n", "1 of 2 ratios are over their budgets"},
		{"no budget", plain, plain, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			got := ""
			if err := run(strings.NewReader(tt.in), &out); err != nil {
				got = err.Error()
			}
			if got != tt.err || !strings.HasPrefix(out.String(), tt.in) || !strings.HasSuffix(out.String(), tt.says) {
				t.Errorf("run() = %q, printed %q, want %q, the input and %q", got, out.String(), tt.err, tt.says)
			}
		})
	}
}
