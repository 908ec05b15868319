//go:build !amd64

package wire

// skim returns an offset at or behind i such that the string, which reaches from i-2
// or before to i at least, does not end between the two. From there on data is short,
// or the end may be near.
func skim(data []byte, i int) (next int) { return skimBytes(data, i) }

// vet returns an offset at or behind i, which is in a string and not behind a backslash
// that escapes it, such that there are neither quotes nor backslashes between the two. odd
// says that there may be control characters or bytes outside ASCII.
func vet(data []byte, i int) (next int, odd bool) { return vetBytes(data, i) }
