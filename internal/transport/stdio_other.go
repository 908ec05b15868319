//go:build !unix

package transport

import "os"

// interruptible returns f, because the system has nothing better.
func interruptible(f *os.File) (*os.File, error) { return f, nil }
