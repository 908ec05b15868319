//go:build unix

package remember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ours returns an error if another user owns or can write the file or folder.
func ours(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("its owner is not known")
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d", st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %04o)", info.Mode().Perm())
	}
	return nil
}
