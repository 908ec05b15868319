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

// guardedPage returns a page of memory between two unreadable ones: a read before or
// after it faults.
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

// The assembly routines read no byte outside the text. The text is at the beginning or
// the end of readable memory, and the results are the same as elsewhere.
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

// compareAssembly runs the routines from every offset of a text, and compares the results
// with those for a copy in the middle of a buffer, and with those of the Go functions.
func compareAssembly(t *testing.T, text []byte) {
	t.Helper()
	const room = 64
	spacious := slices.Concat(make([]byte, room), text, make([]byte, room))[room : room+len(text)]
	for i := 2; i <= len(text); i++ {
		next := skipToQuoteAVX2(text, i)
		if want := skipToQuoteAVX2(spacious, i); next != want || !inSteps(text, i, next) {
			t.Fatalf("skipToQuoteAVX2(%q, %d) = %d, elsewhere %d", text, i, next, want)
		}
		if end := skipToQuoteBytes(text, i); next > end {
			t.Fatalf("skipToQuoteAVX2(%q, %d) = %d, past %d", text, i, next, end)
		}
	}
	for i := range len(text) + 1 {
		next, odd := skipValidAVX2(text, i)
		if want, wantOdd := skipValidAVX2(spacious, i); next != want || odd != wantOdd || next < i || next > len(text) {
			t.Fatalf("skipValidAVX2(%q, %d) = %d, %v, elsewhere %d, %v", text, i, next, odd, want, wantOdd)
		}
		if passed := text[i:next]; !odd && !valid(passed) || firstBadEscape(passed, 0) != len(passed) {
			t.Fatalf("skipValidAVX2(%q, %d) = %d, %v", text, i, next, odd)
		}
	}
}

// inSteps reports whether next is a whole number of strides after i.
func inSteps(text []byte, i, next int) bool {
	return next >= i && next <= len(text) && (next-i)%stride == 0
}
