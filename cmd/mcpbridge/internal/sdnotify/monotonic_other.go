//go:build !linux

package sdnotify

// monotonic is of use to systemd alone.
func monotonic() int64 { return 0 }
