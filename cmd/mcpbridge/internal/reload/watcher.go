package reload

import (
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	// poll is how often files are looked at although nothing was heard of them: network file
	// systems tell of nothing that happens elsewhere, and a watch may have come too late.
	poll = 30 * time.Second
)

// A Watcher tells when the content of files changes. It watches their folders, and those of
// all links on the way to them: files are replaced, and the folders of a ConfigMap are. It
// also looks at them every half minute.
type Watcher struct {
	files  func() []string
	change func()
	log    *slog.Logger
	notify notifier

	stop    chan struct{}  // closed by Close
	running sync.WaitGroup // run
	asked   atomic.Int64   // goroutines that wait for the file system

	// Owned by run.
	seen    Contents
	folders map[string]bool
	blind   bool // the files could not be looked at the last time
}

// Contents are digests of files.
type Contents map[string][sha256.Size]byte

// Watch calls change when one of the files is not as it was seen, on a goroutine of its own
// that ends with Close. files is asked again after each change.
func Watch(seen Contents, files func() []string, change func(), log *slog.Logger) *Watcher {
	n, err := newNotifier()
	if err != nil {
		log.Warn("the system tells of no changes of the configuration's files; they are looked at every 30 s", "err", err)
	}
	return watch(seen, files, change, log, n)
}

func watch(seen Contents, files func() []string, change func(), log *slog.Logger, n notifier) *Watcher {
	w := &Watcher{files: files, change: change, log: log, notify: n, seen: seen, folders: make(map[string]bool), stop: make(chan struct{})}
	w.follow()
	w.running.Go(w.run) // ends with Close
	return w
}

// Close ends it, and waits for a change that is being told of. It may be called on nil.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	close(w.stop)
	w.running.Wait()
	w.notify.close()
}

func (w *Watcher) run() {
	quiet := time.After(0) // after the last event: files may have changed before the first
	var begun time.Time    // the first event that was not looked into
	again := time.NewTicker(poll)
	defer again.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-w.notify.events:
			if quiet == nil {
				begun = time.Now()
			}
			quiet = time.After(min(settle, max(late-time.Since(begun), 0)))
		case err := <-w.notify.errors:
			w.log.Warn("watching the configuration", "err", err)
			quiet = time.After(settle) // events may have been lost
		case <-again.C:
			if quiet == nil && w.asked.Load() == 0 { // one look at most waits for a file system that hangs
				begun, quiet = time.Now(), time.After(settle) // an editor may have begun to write
			}
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
		w.missed(err)
		return false
	}
	w.blind = false
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

// missed says, once, that the files could not be looked at.
func (w *Watcher) missed(err error) {
	if !w.blind && !errors.Is(err, value.ErrStopped) {
		w.log.Warn("the files of the configuration can't be looked at; it is tried again every 30 s", "err", err)
		w.blind = true
	}
}

// look returns what the files are, unless their file system does not answer, or Close is
// called.
func (w *Watcher) look() (Contents, error) {
	files := w.files()
	return ask(w, func() Contents { return Look(files) })
}

// ask returns what the file system says, unless it does not answer in time.
func ask[T any](w *Watcher, do func() T) (T, error) {
	w.asked.Add(1)
	return value.Within(w.stop, lookTime, func() (T, error) {
		defer w.asked.Add(-1)
		return do(), nil
	})
}

// merge adds to what was seen the files that a change has brought. It leaves out those that
// were written since it began, which may have been read before: they are to be told of. So is what
// has changed of the others since, or gone.
func (w *Watcher) merge(now Contents, begun time.Time) (out Contents, left bool) {
	out = make(Contents, len(now))
	for _, file := range w.files() {
		if before, had := w.seen[file]; had {
			out[file] = before
			_, is := now[file]
			left = left || !is
		}
	}
	for file, sum := range now {
		if _, had := w.seen[file]; had {
			continue
		}
		if writtenSince(file, begun) {
			left = true
		} else {
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
