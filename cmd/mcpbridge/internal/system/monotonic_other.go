//go:build !linux

package system

// monotonic is of use to systemd alone.
func monotonic() int64 { return 0 }
