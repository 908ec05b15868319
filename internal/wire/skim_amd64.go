package wire

import "golang.org/x/sys/cpu"

// skim returns an offset at or behind i such that the string, which reaches from i-2
// or before to i at least, does not end between the two, and whether there are
// control characters or bytes outside ASCII between them. From there on data is
// short, or the end may be near.
func skim(data []byte, i int) (next int, odd bool) {
	if cpu.X86.HasAVX2 {
		return skimAVX2(data, i)
	}
	return skimBytes(data, i)
}

// skimAVX2 takes 64 bytes at a time. i must be 2 at least.
//
//go:noescape
func skimAVX2(data []byte, i int) (next int, odd bool)

// skipEscapes returns an offset at or behind i such that all escapes between the two
// are such that exist. No escape has begun before i, which must be 3 at least.
func skipEscapes(text []byte, i int) int {
	if cpu.X86.HasAVX2 {
		return skipEscapesAVX2(text, i)
	}
	return i
}

// skipEscapesAVX2 takes 64 bytes at a time. i must be 3 at least.
//
//go:noescape
func skipEscapesAVX2(text []byte, i int) (next int)
