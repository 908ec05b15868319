//go:build !unix

package http1

// CanWriteSome is false: here only writes that wait are possible.
const CanWriteSome = false

// WriteSome writes nothing.
func WriteSome(uintptr, []byte) int { return 0 }
