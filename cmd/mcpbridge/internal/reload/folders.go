package reload

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// maxLinks bounds the links on the way to a file.
const maxLinks = 40

// A notifier tells what happens in folders. The zero value tells nothing.
type notifier struct {
	events      <-chan fsnotify.Event
	errors      <-chan error
	add, remove func(folder string) error
	end         func() error
}

func newNotifier() (notifier, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return notifier{}, err
	}
	return notifier{n.Events, n.Errors, n.Add, n.Remove, n.Close}, nil
}

func (n *notifier) close() {
	if n.end != nil {
		_ = n.end() // it was open
	}
}

// follow watches the folders of all files, and no others. What comes while it looks for them
// may have other folders: it looks until nothing is new.
func (w *Watcher) follow() {
	const most = 3 // the poll stands behind it
	files := w.files()
	for range most {
		want, err := ask(w, func() map[string]bool { return foldersOf(files) })
		if err != nil || !w.watchFolders(want) {
			return // who looks at the files next says so
		}
	}
}

// watchFolders watches folders, and no others. It reports whether one of them is new.
func (w *Watcher) watchFolders(want map[string]bool) (grown bool) {
	if w.notify.add == nil {
		return false
	}
	for _, folder := range slices.Sorted(maps.Keys(want)) {
		if err := w.notify.add(folder); err != nil && !w.folders[folder] { // again, since it may be another of that name
			w.log.Warn("a folder of the configuration can't be watched; its files are looked at every 30 s", "dir", folder, "err", err)
		}
		grown = grown || !w.folders[folder]
		w.folders[folder] = true
	}
	for folder := range w.folders {
		if !want[folder] {
			_ = w.notify.remove(folder) // it may be gone
			delete(w.folders, folder)
		}
	}
	return grown
}

// foldersOf returns the folders in which a file may change, or appear, or a link on the way to
// it.
func foldersOf(files []string) map[string]bool {
	want := make(map[string]bool)
	for _, file := range files {
		links := maxLinks
		if at, ok := trace(want, file, &links); ok {
			want[filepath.Dir(at)] = true
		}
	}
	return want
}

// trace adds to want the folders of the links on the way to a file, and returns where the file
// is, without links. It reports false at what is missing, whose folder it adds: a link may lead
// nowhere for a moment.
func trace(want map[string]bool, path string, links *int) (at string, ok bool) {
	dir := filepath.Dir(path)
	if dir == path {
		return path, true
	}
	if dir, ok = trace(want, dir, links); !ok {
		return "", false
	}
	at = filepath.Join(dir, filepath.Base(path))
	info, err := os.Lstat(at)
	if err != nil {
		want[dir] = true
		return "", false
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return at, true
	}
	want[dir] = true
	to, err := os.Readlink(at)
	if *links--; err != nil || *links < 0 {
		return "", false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return trace(want, to, links)
}
