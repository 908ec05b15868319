//go:build !linux

package transport

import "os"

// Unread returns the number of written bytes that the child has not read, and whether the
// system can tell, which this one can't.
func (c *Command) Unread() (n int, known bool) { return 0, false }

func unread(*os.File) (n int, known bool) { return 0, false }
