package value

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// secretFolders are where engines of containers put secrets for one container.
var secretFolders = []string{"/run/secrets/", "/var/run/secrets/"}

// OthersReadSecret is [OthersRead] for a file with a secret that may have been made for this
// process: below /run/secrets, on a file system that can't be written to, or in memory. What
// makes such files gives them modes that cannot be changed (Kubernetes 0644), and nobody else
// comes there.
func OthersReadSecret(path string) bool {
	if !OthersRead(path) {
		return false
	}
	abs, err := filepath.Abs(path)
	made := err == nil && slices.ContainsFunc(secretFolders, func(dir string) bool { return strings.HasPrefix(abs, dir) })
	return !made && !isMadeForOne(path)
}
