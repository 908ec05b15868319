package wire

import "golang.org/x/sys/cpu"

// skim returns an offset at or behind i such that the string, which reaches from i-2
// or before to i at least, does not end between the two. From there on data is short,
// or the end may be near.
func skim(data []byte, i int) (next int) {
	if cpu.X86.HasAVX2 {
		return skimAVX2(data, i)
	}
	return skimBytes(data, i)
}

// skimAVX2 takes 64 bytes at a time. i must be 2 at least.
//
//go:noescape
func skimAVX2(data []byte, i int) (next int)

// vet returns an offset at or behind i, which is in a string and not behind a backslash
// that escapes it, such that the string does not end between the two, all escapes between
// them exist, and none is under way at next. odd says that there may be control characters
// or bytes outside ASCII. Next is the string's end or an escape that does not exist, within
// 64 bytes, or data is short.
func vet(data []byte, i int) (next int, odd bool) {
	if cpu.X86.HasAVX2 {
		return vetAVX2(data, i)
	}
	return vetBytes(data, i)
}

// vetAVX2 takes 64 bytes at a time.
//
//go:noescape
func vetAVX2(data []byte, i int) (next int, odd bool)
