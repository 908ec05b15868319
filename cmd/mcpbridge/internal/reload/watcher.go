package reload

import (
	"crypto/sha256"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

const (
	// settle is how long files must be left alone before they are looked at: editors write
	// in several steps. late bounds the wait in a folder where there is always something.
	settle = 150 * time.Millisecond
	late   = time.Second
	// mostRead bounds what is read of a file to see whether it has changed.
	mostRead = value.MaxFile
	// lookTime bounds the time in which files are looked at.
	lookTime = 5 * time.Second
)

// A Watcher tells when the content of files changes. It watches their folders, and those of
// the files that they are links to: files are replaced, and the folders of a ConfigMap are.
type Watcher struct {
	files  func() []string
	change func()
	log    *slog.Logger
	notify *fsnotify.Watcher

	stop    chan struct{}  // closed by Close
	running sync.WaitGroup // run
	seen    Contents
	folders map[string]bool
}

// Contents are digests of files.
type Contents map[string][sha256.Size]byte

// Watch calls change when one of the files is not as it was seen, on a goroutine of its own
// that ends with Close. files is asked again after each change.
func Watch(seen Contents, files func() []string, change func(), log *slog.Logger) (*Watcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watcher{files: files, change: change, log: log, notify: n, seen: seen, folders: make(map[string]bool), stop: make(chan struct{})}
	w.follow()
	w.running.Go(w.run) // ends with Close
	return w, nil
}

// Close ends it, and waits for a change that is being told of. It may be called on nil.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	close(w.stop)
	_ = w.notify.Close() // it was open
	w.running.Wait()
}

func (w *Watcher) run() {
	quiet := time.After(0) // after the last event: files may have changed before the first
	var begun time.Time    // the first event that was not looked into
	for {
		select {
		case _, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if quiet == nil {
				begun = time.Now()
			}
			quiet = time.After(min(settle, max(late-time.Since(begun), 0)))
		case err, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.log.Warn("watching the configuration", "err", err)
			quiet = time.After(settle) // events may have been lost
		case <-quiet:
			quiet = nil
			if w.compare() {
				quiet = time.After(settle)
			}
		}
	}
}

// compare tells of a change if there is one. It reports whether files have to be looked at
// again.
func (w *Watcher) compare() (again bool) {
	w.follow() // before looking: what changes after is an event
	now, err := w.look()
	if err != nil {
		w.log.Warn("the files of the configuration can't be looked at; after changes send SIGHUP, or POST /reload to the admin address", "err", err)
		return false
	}
	if maps.Equal(now, w.seen) {
		return false
	}
	w.seen = now
	begun := time.Now()
	w.change()
	w.follow()
	if now, err = w.look(); err != nil {
		return true
	}
	w.seen, again = w.merge(now, begun)
	return again
}

// look returns what the files are, unless their file system does not answer, or Close is
// called.
func (w *Watcher) look() (Contents, error) {
	files := w.files()
	return value.Within(w.stop, lookTime, func() (Contents, error) { return Look(files), nil })
}

// merge adds to what was seen the files that a change has brought. It leaves out those that
// were written since it began, which may have been read before: they are to be told of.
func (w *Watcher) merge(now Contents, begun time.Time) (out Contents, left bool) {
	out = make(Contents, len(now))
	for file, sum := range now {
		before, had := w.seen[file]
		switch {
		case had:
			out[file] = before // what has changed since is to be told of
		case writtenSince(file, begun):
			left = true
		default:
			out[file] = sum
		}
	}
	return out, left
}

// writtenSince reports whether a file was written since a moment. The times of files may be
// a little older than the clock; one that is much older has settled before.
func writtenSince(file string, at time.Time) bool {
	s, err := os.Stat(file)
	return err == nil && s.ModTime().After(at.Add(-settle/2))
}

// Look returns digests of the files that can be read; for a pattern, of the names that match.
func Look(files []string) Contents {
	out := make(Contents)
	for _, file := range files {
		if sum, ok := digest(file); ok {
			out[file] = sum
		} else if found, err := layer.Glob(file); err == nil && len(found) > 0 {
			out[file] = sha256.Sum256([]byte(strings.Join(found, "\x00")))
		}
	}
	return out
}

func digest(file string) (sum [sha256.Size]byte, ok bool) {
	if s, err := os.Stat(file); err != nil || !s.Mode().IsRegular() {
		return sum, false // a pipe would wait for its writer, and be read empty
	}
	f, err := os.Open(file)
	if err != nil {
		return sum, false
	}
	defer func() { _ = f.Close() }() // read-only
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, mostRead)); err != nil {
		return sum, false
	}
	return [sha256.Size]byte(h.Sum(nil)), true
}

// follow watches the folders of all files, and no others.
func (w *Watcher) follow() {
	files := w.files()
	want, err := value.Within(w.stop, lookTime, func() (map[string]bool, error) { return foldersOf(files), nil })
	if err != nil {
		return // who looks at the files next says so
	}
	for _, folder := range slices.Sorted(maps.Keys(want)) {
		if err := w.notify.Add(folder); err != nil && !w.folders[folder] { // again, since it may be another of that name
			w.log.Warn("a folder of the configuration can't be watched; after changes send SIGHUP, or POST /reload to the admin address", "dir", folder, "err", err)
		}
		w.folders[folder] = true
	}
	for folder := range w.folders {
		if !want[folder] {
			_ = w.notify.Remove(folder) // it may be gone
			delete(w.folders, folder)
		}
	}
}

// foldersOf returns the folders in which a file, or what it is a link to, may change.
func foldersOf(files []string) map[string]bool {
	want := make(map[string]bool)
	for _, file := range files {
		want[existing(filepath.Dir(file))] = true
		if real, err := filepath.EvalSymlinks(file); err == nil {
			want[filepath.Dir(real)] = true
		}
	}
	return want
}

// existing returns the folder, or the nearest above it that exists, where one may be created.
func existing(folder string) string {
	for {
		above := filepath.Dir(folder)
		if _, err := os.Stat(folder); err == nil || above == folder {
			return folder
		}
		folder = above
	}
}
