//go:build !unix

package login

import "io/fs"

// isPrivate reports whether a file is one: who may read it is inherited from its folder,
// which is the user's.
func isPrivate(info fs.FileInfo) bool { return info.Mode().IsRegular() }
