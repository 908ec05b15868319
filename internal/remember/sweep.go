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

	// unfinished is the maximum age of a temporary file. An older one was left behind by
	// a killed process.
	unfinished = time.Minute
)

// sweep removes expired files, and the oldest files if there are too many. It ignores
// files with other names than those of records, and files that others own or can write.
// It also ignores errors, because the next Keep sweeps again.
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

// names lists the files of the folder whose names are those of records.
func names(root *os.Root) []string {
	dir, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // it was only read
	all, _ := dir.Readdirnames(-1)     // the names up to an error, if any
	return slices.DeleteFunc(all, func(name string) bool { return !named(name) })
}

// named reports whether name is the name of a record or of a temporary file.
func named(name string) bool {
	begin, end, _ := strings.Cut(name, ".")
	digits, err := hex.DecodeString(begin)
	return err == nil && len(digits) == len(Key{}) && ("."+end == recordSuffix || strings.HasSuffix(end, tempSuffix))
}

// expired reports whether a file is too old. A file from the far future was written with
// a wrong clock.
func expired(info fs.FileInfo, now time.Time) bool {
	limit := MaxAge
	if strings.HasSuffix(info.Name(), tempSuffix) {
		limit = unfinished
	}
	return now.Sub(info.ModTime()).Abs() > limit
}
