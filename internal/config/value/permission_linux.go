package value

import "syscall"

// Spec: statfs(2).
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
	readOnly   = 1 // ST_RDONLY
)

// isMadeForOne reports whether a file stands on a file system that can't be written to, or in
// memory, as one for one container does.
func isMadeForOne(path string) bool {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return false
	}
	return isOwnMount(uint64(fs.Type), uint64(fs.Flags))
}

func isOwnMount(kind, flags uint64) bool {
	return flags&readOnly != 0 || uint32(kind) == tmpfsMagic || uint32(kind) == ramfsMagic
}
