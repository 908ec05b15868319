package install

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, before, after, want string }{
		{"nothing", "a\nb\n", "a\nb\n", ""},
		{"a line", "a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		{"lines that are there twice", "a\nx\nx\n", "b\nx\nx\n", "@@ -1,3 +1,3 @@\n-a\n+b\n x\n x\n"},
		{"of an empty file", "", "a\n", "@@ -0,0 +1,1 @@\n+a\n"},
		{"all of it", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		{"no end of the line", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"three lines around", numbered(9), strings.Replace(numbered(9), "5\n", "x\n", 1), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{"near each other", numbered(9), strings.NewReplacer("1\n", "x\n", "8\n", "").Replace(numbered(9)), "@@ -1,9 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n 9\n"},
		{"far from each other", numbered(12), strings.NewReplacer("1\n2\n", "2\n", "12\n", "12\n13\n").Replace(numbered(12)), "@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n@@ -10,3 +9,4 @@\n 10\n 11\n 12\n+13\n"},
	} {
		got := string(diff("f", []byte(tt.before), []byte(tt.after)))
		if want := "--- f\n+++ f\n" + tt.want; tt.want != "" && got != want || tt.want == "" && got != "" {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

// What a diff says makes one text of the other.
func TestDiffOfRandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []byte {
		var b bytes.Buffer
		for range r.IntN(30) {
			fmt.Fprintf(&b, "%d\n", r.IntN(20))
		}
		return b.Bytes()
	}
	for range 2000 {
		before, after := random(), random()
		if got := patched(t, before, diff("f", before, after)); !bytes.Equal(got, after) {
			t.Fatalf("of\n%s\nand\n%s\nthe diff makes\n%s", before, after, got)
		}
	}
}

// patched applies a diff, and wants its context and its numbers to fit.
func patched(t *testing.T, text, diff []byte) []byte {
	t.Helper()
	var out [][]byte
	old, at := bytes.SplitAfter(text, []byte("\n")), 0
	for i, line := range bytes.SplitAfter(diff, []byte("\n")) {
		switch {
		case i < 2 || len(line) == 0:
		case line[0] == '@':
			var from, n, to, m int
			if _, err := fmt.Sscanf(string(line), "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				from--
			}
			out = append(out, old[at:from]...)
			if at = from; m > 0 && len(out) != to-1 {
				t.Fatalf("%s is line %d of the new text", line, len(out)+1)
			}
		case line[0] == '+':
			out = append(out, line[1:])
		case !bytes.Equal(old[at], line[1:]):
			t.Fatalf("%q in the diff, %q in the text", line, old[at])
		default:
			if at++; line[0] == ' ' {
				out = append(out, line[1:])
			}
		}
	}
	return bytes.Join(append(out, old[at:]...), nil)
}
