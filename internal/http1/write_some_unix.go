//go:build unix

package http1

import "syscall"

const canWriteSome = true

// writeSome writes without waiting, and returns how many bytes it wrote.
func writeSome(fd uintptr, p []byte) int {
	n, _ := syscall.Write(int(fd), p) // what went wrong, a write that waits will tell
	return max(n, 0)
}
