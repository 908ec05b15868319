package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

const (
	includeKey = "include"
	// wildcards are the characters that make a name a pattern.
	wildcards = "*?["
	// globTime bounds the time for listing a folder.
	globTime = 5 * time.Second
)

// An inclusion reads the files that the configuration includes.
type inclusion struct {
	*reader
	included []string
}

// include adds the files that the file includes.
func (r *reader) include() error {
	in := &inclusion{reader: r}
	names := r.given.Strings(includeKey)
	if r.rep.Written(key.Join(includeKey, strconv.Itoa(len(names)))) {
		return nil // a name has a mistake, which was reported
	}
	seen := map[string]bool{whole(r.Path): true}
	for i, name := range names {
		at := r.rep.Places[key.Join(includeKey, strconv.Itoa(i))]
		for _, file := range in.named(at, name) {
			if seen[whole(file)] {
				continue
			}
			seen[whole(file)] = true
			if err := in.read(at, file); err != nil {
				return err
			}
		}
	}
	if len(in.included) > 0 {
		r.given.Set(includeKey, in.included)
	} else {
		r.given.Delete(includeKey)
	}
	return nil
}

// named returns the files that an entry of the list names.
func (in *inclusion) named(at key.Place, name string) []string {
	path := in.scope(in.Path).Path(name)
	base := filepath.Base(path)
	switch {
	case name == "":
		in.rep.FailAt(at, includeKey, "names no file; write one, or a pattern such as conf.d/*.yaml")
		return nil
	case strings.ContainsAny(filepath.Dir(name), wildcards):
		in.rep.FailAt(at, includeKey, "only the last part of the path may be a pattern; write an entry for each folder, as in [a/*.yaml, b/*.yaml]")
		return nil
	case !strings.ContainsAny(base, wildcards) && whole(path) == whole(in.Path):
		in.rep.FailAt(at, includeKey, "names this file itself; remove it")
		return nil
	case !strings.ContainsAny(base, wildcards):
		return []string{path}
	}
	in.rep.Opened(path)
	files, err := value.Within(in.rep.Stop, globTime, func() ([]string, error) { return Glob(path) })
	if err != nil {
		in.rep.FailAt(at, includeKey, "%v", err)
	}
	return files
}

// read adds what a file has.
func (in *inclusion) read(at key.Place, file string) error {
	data, err := in.scope(in.Path).Read(file, value.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		in.rep.FailAt(at, includeKey, "there is no file %s; create it, or write a pattern such as conf.d/*.yaml, which may match none", file)
		return nil
	case err != nil:
		in.rep.FailAt(at, includeKey, "%v", err)
		return nil
	}
	in.included = append(in.included, file)
	root, written := parseFile(file, data, in.rep)
	w := in.fileWalker(file)
	w.includedBy = in.Path
	return in.add(w, in.adapted(file, root, written))
}

// taken reports a key that an included file can't have: another file has it, or none but the
// first may.
func (w *walker) taken(kn *yaml.Node, path string) bool {
	if above := key.Parent(path); w.includedBy == "" || above != "" && above != "servers" && above != "groups" {
		return false
	}
	before, twice := w.rep.Places[path]
	twice = twice && before.Source != w.where
	switch {
	case path == includeKey:
		w.rep.FailAt(w.place(kn), path, "an included file can't include others; write it into %s", w.includedBy)
	case path == "servers" || path == "groups" || !twice:
		return false
	case key.Parent(path) == "servers":
		w.rep.FailAt(w.place(kn), path, "is also a server in %s; rename or remove one of them", before.Where())
	case key.Parent(path) == "groups":
		w.rep.FailAt(w.place(kn), path, "is also a group in %s; rename or remove one of them", before.Where())
	default:
		w.rep.FailAt(w.place(kn), path, "is also set in %s; remove one of them", before.Where())
	}
	return true
}

// Glob returns the files that match a path, of which the last part may be a pattern, in the
// order of their names. Folders never match, and hidden files only a pattern that begins with
// a dot. A folder that does not exist has no files.
func Glob(path string) ([]string, error) {
	folder, pattern := filepath.Dir(path), filepath.Base(path)
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%q is not a pattern; write one such as *.yaml", pattern)
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("can't be read: %w", err)
	}
	var files []string
	for _, e := range entries { // sorted
		name, kind := e.Name(), e.Type()
		hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".")
		if ok, _ := filepath.Match(pattern, name); ok && !hidden && (kind.IsRegular() || kind&fs.ModeSymlink != 0) {
			files = append(files, filepath.Join(folder, name))
		}
	}
	return files, nil
}

// whole returns a path by which files are compared.
func whole(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
