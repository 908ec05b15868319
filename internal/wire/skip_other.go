//go:build !amd64

package wire

// skipToQuote returns an offset, i or larger, before which the string does not end. The
// string must begin at i-2 or before, and not end before i.
func skipToQuote(data []byte, i int) (next int) { return skipToQuoteBytes(data, i) }

// skipValid returns an offset, i or larger, before which there are neither quotes nor
// backslashes. i must be in a string, but not within an escape. odd reports that there
// may be control characters or bytes outside ASCII.
func skipValid(data []byte, i int) (next int, odd bool) { return skipValidBytes(data, i) }
