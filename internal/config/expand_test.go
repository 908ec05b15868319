package config

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"lisetn", "listen"}, {"keepalive", "keep_alive"}, {"write-timeout", "write_timeout"}, {"ear", "era"}, {"server", "servers"},
	} {
		if got, ok := nearest(tt.a, append(schema.spelled(), serverKeys()...)); !ok || got != tt.b {
			t.Errorf("nearest(%q) = %q, %v, want %q", tt.a, got, ok, tt.b)
		}
	}
	if got, ok := nearest("banana", schema.spelled()); ok {
		t.Errorf("nearest(%q) = %q, want none", "banana", got)
	}
}

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
