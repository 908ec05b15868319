//go:build !amd64

package wire

// skim returns an offset at or behind i such that the string, which reaches from i-2
// or before to i at least, does not end between the two, and whether there are
// control characters or bytes outside ASCII between them. From there on data is
// short, or the end may be near.
func skim(data []byte, i int) (next int, odd bool) { return skimBytes(data, i) }

// skipEscapes returns an offset at or behind i such that all escapes between the two
// are such that exist.
func skipEscapes(_ []byte, i int) int { return i }
