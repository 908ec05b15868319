//go:build unix

package http1

import "syscall"

// CanWriteSome is true: WriteSome works.
const CanWriteSome = true

// WriteSome writes what there is room for, without waiting, to a file in non-blocking mode, and returns
// how many bytes that was. What went wrong, a write that waits will tell.
func WriteSome(fd uintptr, p []byte) int {
	n, _ := syscall.Write(int(fd), p)
	return max(n, 0)
}
