//go:build linux && amd64

package wire

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/cpu"
)

// guardedPage returns a page of memory between two that can't be read: a read before
// or behind it is a fault.
func guardedPage(t *testing.T) []byte {
	t.Helper()
	size := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 3*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(all) })
	for _, outside := range [][]byte{all[:size], all[2*size:]} {
		if err := syscall.Mprotect(outside, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[size : 2*size : 2*size]
}

// The routines in assembly read no byte beside the text, which stands at the end of
// what is mapped, or at its beginning, and tell the same there as elsewhere.
func TestAssemblyStaysInTheText(t *testing.T) {
	if !cpu.X86.HasAVX2 {
		t.Skip("this machine has no AVX2")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	page := guardedPage(t)
	for _, part := range []string{"x", `\"`, `\\"`, `ab\\`, `\n`, `\q`, "é", `\u00e9`, `x\u12`, "y\x1f", strings.Repeat("z", 63) + `"`} {
		text := []byte(strings.Repeat(part, 200))
		for n := range 201 {
			front, back := page[:n:n], page[len(page)-n:]
			copy(front, text)
			copy(back, text[len(text)-n:])
			compareAssembly(t, front)
			compareAssembly(t, back)
		}
	}
}

// compareAssembly holds the routines, begun at every place of a text, against what
// they say of a copy that has room around it, and against Go.
func compareAssembly(t *testing.T, text []byte) {
	t.Helper()
	const room = 64
	spacious := slices.Concat(make([]byte, room), text, make([]byte, room))[room : room+len(text)]
	for i := 2; i <= len(text); i++ {
		next := skimAVX2(text, i)
		if want := skimAVX2(spacious, i); next != want || !inSteps(text, i, next) {
			t.Fatalf("skimAVX2(%q, %d) = %d, elsewhere %d", text, i, next, want)
		}
		if end := skimBytes(text, i); next > end {
			t.Fatalf("skimAVX2(%q, %d) = %d, past %d", text, i, next, end)
		}
	}
	for i := range len(text) + 1 {
		next, odd := vetAVX2(text, i)
		if want, wantOdd := vetAVX2(spacious, i); next != want || odd != wantOdd || next < i || next > len(text) {
			t.Fatalf("vetAVX2(%q, %d) = %d, %v, elsewhere %d, %v", text, i, next, odd, want, wantOdd)
		}
		if passed := text[i:next]; !odd && !valid(passed) || firstBadEscape(passed, 0) != len(passed) {
			t.Fatalf("vetAVX2(%q, %d) = %d, %v", text, i, next, odd)
		}
	}
}

// inSteps reports whether next is what whole steps from i lead to.
func inSteps(text []byte, i, next int) bool {
	return next >= i && next <= len(text) && (next-i)%skimmed == 0
}
