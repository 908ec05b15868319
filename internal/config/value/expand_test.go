package value

import (
	"strings"
	"testing"
)

// A value without ${ is never touched, and no value makes Expand panic or
// repeat a variable's value in an error.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$", "${", "$${", "$$${A}", "${A}", "${A:-}", "${:-x}", "a${env:A}b${B:-c}", "${A${B}}"} {
		f.Add(s)
	}
	lookup := func(name string) (string, bool) { return "s3cret-value", name == "A" }
	dir := f.TempDir() // nothing is there
	f.Fuzz(func(t *testing.T, s string) {
		got, err := (&Scope{Lookup: lookup, Dir: dir}).Expand(s)
		if !strings.Contains(s, "${") && (got != s || err != nil) {
			t.Errorf("Expand(%q) = %q, %v, want it untouched", s, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret-value") {
			t.Errorf("Expand(%q) = %v: the error repeats a value", s, err)
		}
	})
}
