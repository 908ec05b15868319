//go:build !unix && !windows

package guard

import (
	"errors"
	"os"
)

// A keeper is not to be had.
type keeper struct{}

func newKeeper(func(*keeper, error)) (*keeper, error) {
	return nil, errors.New("there are no process groups on this system")
}

func (k *keeper) starting(uint64) error           { return nil }
func (k *keeper) settled(uint64, int, bool) error { return nil }
func (k *keeper) ended(int) error                 { return nil }
func (k *keeper) inherit(*keeper) error           { return nil }
func (k *keeper) lasted() bool                    { return false }
func (k *keeper) abandon()                        {}
func (k *keeper) close()                          {}

func inode(*os.File) uint64 { return 0 }
