package wire

import "golang.org/x/sys/cpu"

// skipToQuote returns an offset, i or larger, before which the string does not end. The
// string must begin at i-2 or before, and not end before i. At the returned offset either
// the end of the string may be near, or fewer than 64 bytes of data are left.
func skipToQuote(data []byte, i int) (next int) {
	if cpu.X86.HasAVX2 {
		return skipToQuoteAVX2(data, i)
	}
	return skipToQuoteBytes(data, i)
}

// skipToQuoteAVX2 tests 64 bytes at a time. i must be at least 2.
//
//go:noescape
func skipToQuoteAVX2(data []byte, i int) (next int)

// skipValid returns an offset next, i or larger. i must be in a string, but not within an
// escape. Between i and next the string does not end, and all escapes are valid; next is
// not within an escape. odd reports that there may be control characters or bytes outside
// ASCII. Within 64 bytes after next there is the string's end or an invalid escape, or
// data ends.
func skipValid(data []byte, i int) (next int, odd bool) {
	if cpu.X86.HasAVX2 {
		return skipValidAVX2(data, i)
	}
	return skipValidBytes(data, i)
}

// skipValidAVX2 tests 64 bytes at a time.
//
//go:noescape
func skipValidAVX2(data []byte, i int) (next int, odd bool)
