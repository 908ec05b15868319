package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// placesOf returns Places of which each share has as many as its name has letters.
func placesOf(most int, names string) *Places {
	p := &Places{All: limits.Streams, Max: most, Each: limits.StreamsEach, MaxEach: most}
	for name := range strings.FieldsSeq(names) {
		for range name {
			p.Take(Share{Principal: Principal(name)})
		}
	}
	return p
}

// The share with the most places yields, if it has more than an equal part, to one without any.
func TestHardeningBiggestYields(t *testing.T) {
	for _, tt := range []struct {
		most  int
		names string
		to    string
		want  string
	}{
		{10, "aaaaa bbbbb", "aaaaa", ""},
		{10, "aaaaaa bbbb", "c", "aaaaaa"},
		{10, "aaaaaaaaaa", "c", "aaaaaaaaaa"},
		{10, "aaaaaaaaa b", "b", ""},    // has one
		{10, "aa bb cc dd ee", "f", ""}, // two are not too many
		{10, "aaa bb cc dd e", "f", "aaa"},
		{10, "aaa b c d e f g", "h", "aaa"},
		{12, "aaa bbb ccc ddd", "e", "any"}, // more than two of twelve each
		{20, "aaa", "b", ""},                // less than an equal part
		{0, "", "a", ""},
	} {
		t.Run(fmt.Sprintf("%s to %s of %d", tt.names, tt.to, tt.most), func(t *testing.T) {
			got, ok := placesOf(tt.most, tt.names).Biggest(Share{Principal: Principal(tt.to)})
			if name := string(got.Principal); ok != (tt.want != "") || tt.want != "any" && name != tt.want {
				t.Errorf("Biggest() = %q, %v, want %q", name, ok, tt.want)
			}
		})
	}
}

func BenchmarkBiggest(b *testing.B) {
	p := placesOf(10_000, "")
	for n := range 5000 {
		p.Take(Share{Principal: Principal(fmt.Sprint(n))})
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Biggest(Share{Principal: "new"})
	}
}
