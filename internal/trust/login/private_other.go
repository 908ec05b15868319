//go:build !unix

package login

import "io/fs"

// isPrivate reports whether a file is a regular one. Its permissions are inherited from its
// folder, which belongs to the user.
func isPrivate(info fs.FileInfo) bool { return info.Mode().IsRegular() }
