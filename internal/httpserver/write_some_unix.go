//go:build unix

package httpserver

import "syscall"

const canAttempt = true

// writeSome writes without waiting, and returns how many bytes it wrote.
func writeSome(fd uintptr, p []byte) int {
	n, _ := syscall.Write(int(fd), p) // what went wrong, a call that waits will tell
	return max(n, 0)
}
