//go:build !linux

package transport

import "syscall"

// limitUnacknowledged does nothing: there is no portable limit on unacknowledged data.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
