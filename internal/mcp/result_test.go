package mcp

import (
	"slices"
	"testing"
)

// Release calls each function once, the last one first, and then releases the body.
func TestOnRelease(t *testing.T) {
	var got []string
	note := func(what string) func() { return func() { got = append(got, what) } }
	r := NewResult([]byte("{}"), note("bytes"))
	r.OnRelease(note("first"))
	r.OnRelease(note("second"))
	r.Release()
	r.Release()
	if want := []string{"second", "first", "bytes"}; !slices.Equal(got, want) {
		t.Errorf("Release called %q, want %q", got, want)
	}
	r = NewResult(nil, nil)
	r.OnRelease(note("alone"))
	if r.Release(); !slices.Contains(got, "alone") {
		t.Error("Release of a result without bytes of its own called no function")
	}
}
