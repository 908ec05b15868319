//go:build !linux

package transport

import "os"

// openOutput opens the standard output of a child.
func openOutput() (r, w *os.File, err error) { return os.Pipe() }
