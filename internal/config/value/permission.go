package value

import (
	"io/fs"
	"os"
	"runtime"
)

// othersMayRead is the permission of users who are neither the owner nor in the group.
const othersMayRead fs.FileMode = 0o004

// OthersRead reports whether every user of the machine may read a file.
func OthersRead(path string) bool {
	if runtime.GOOS == "windows" {
		return false // its modes say nothing of other users
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&othersMayRead != 0
}
