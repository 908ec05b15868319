package config

import (
	"strings"
	"testing"
)

// A value without ${ is never touched, and no value makes expand panic or
// repeat a variable's value in an error.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$", "${", "$${", "$$${A}", "${A}", "${A:-}", "${:-x}", "a${env:A}b${B:-c}", "${A${B}}"} {
		f.Add(s)
	}
	lookup := func(name string) (string, bool) { return "s3cret-value", name == "A" }
	dir := f.TempDir() // nothing is there
	f.Fuzz(func(t *testing.T, s string) {
		got, err := (&scope{lookup: lookup, dir: dir}).expand(s)
		if !strings.Contains(s, "${") && (got != s || err != nil) {
			t.Errorf("expand(%q) = %q, %v, want it untouched", s, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret-value") {
			t.Errorf("expand(%q) = %v: the error repeats a value", s, err)
		}
	})
}
