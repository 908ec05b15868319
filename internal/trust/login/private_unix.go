//go:build unix

package login

import (
	"io/fs"
	"os"
	"syscall"
)

// isPrivate reports whether only the user may read and write a file.
func isPrivate(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0 && info.Mode().IsRegular()
}
