//go:build !linux

package transport

import "os"

// openOutput opens what a child writes its messages to.
func openOutput() (r, w *os.File, err error) { return os.Pipe() }
