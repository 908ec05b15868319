package remember

import (
	"cmp"
	"encoding/hex"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	recordSuffix = ".json"
	tempSuffix   = ".tmp"

	// unfinished is how old a file may be that is still being written. An older one
	// was left by a process that was killed.
	unfinished = time.Minute
)

// sweep removes what is too old, and the oldest of what is too much. What has a
// name that we don't give is left alone, and so is what is not the user's. An
// error costs nothing: whoever keeps the next record sweeps again.
func sweep(root *os.Root, now time.Time) {
	var kept []fs.FileInfo
	for _, name := range names(root) {
		info, err := ourFile(root, name)
		switch {
		case err != nil:
		case expired(info, now):
			_ = root.Remove(name)
		default:
			kept = append(kept, info)
		}
	}
	if len(kept) <= maxFiles {
		return
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept[:len(kept)-maxFiles] {
		_ = root.Remove(info.Name())
	}
}

// names lists the files of the folder that have a name of ours.
func names(root *os.Root) []string {
	dir, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // it was only read
	all, _ := dir.Readdirnames(-1)     // as far as it can be read
	return slices.DeleteFunc(all, func(name string) bool { return !named(name) })
}

// named reports whether name is that of a record, or of one that is being written.
func named(name string) bool {
	begin, end, _ := strings.Cut(name, ".")
	digits, err := hex.DecodeString(begin)
	return err == nil && len(digits) == len(Key{}) && ("."+end == recordSuffix || strings.HasSuffix(end, tempSuffix))
}

// expired reports whether a file has had its time. One of the far future was
// written when the clock was wrong.
func expired(info fs.FileInfo, now time.Time) bool {
	limit := MaxAge
	if strings.HasSuffix(info.Name(), tempSuffix) {
		limit = unfinished
	}
	return now.Sub(info.ModTime()).Abs() > limit
}
