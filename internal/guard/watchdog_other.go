//go:build !unix && !windows

package guard

import (
	"errors"
	"os"
)

// There is no watchdog on this system.
type watchdog struct{}

func newWatchdog(func(*watchdog, error)) (*watchdog, error) {
	return nil, errors.New("there are no process groups on this system")
}

func (w *watchdog) starting(uint64, string) error   { return nil }
func (w *watchdog) settled(uint64, int, bool) error { return nil }
func (w *watchdog) ended(int) error                 { return nil }
func (w *watchdog) inherit(*watchdog) error         { return nil }
func (w *watchdog) lasted() bool                    { return false }
func (w *watchdog) abandon()                        {}
func (w *watchdog) close()                          {}

func inode(*os.File) uint64 { return 0 }
