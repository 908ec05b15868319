package reload

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// A watched is a folder with files, of which one is watched.
type watched struct {
	t       *testing.T
	dir     string
	files   []string
	changes atomic.Int64
}

// write puts a file in place in one step: one that is written where it is may be seen empty.
func (w *watched) write(name, text string) {
	w.t.Helper()
	whole := filepath.Join(w.t.TempDir(), "whole")
	if err := os.WriteFile(whole, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(whole, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) begin() {
	w.t.Helper()
	got := Watch(Look(w.files), func() []string { return w.files }, func() { w.changes.Add(1) }, slog.New(slog.DiscardHandler))
	w.t.Cleanup(got.Close)
}

// want waits until so many changes were told of, and for one more.
func (w *watched) want(n int64) {
	w.t.Helper()
	w.atLeast(n)
	time.Sleep(2 * settle)
	if got := w.changes.Load(); got != n {
		w.t.Errorf("%d changes, want %d", got, n)
	}
}

func (w *watched) atLeast(n int64) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); w.changes.Load() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d changes, want %d", w.changes.Load(), n)
		}
	}
}

// However a file is changed it is noticed, once; and nothing else is.
func TestWatch(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	w.files = []string{filepath.Join(w.dir, "config.yaml")}
	w.write("config.yaml", "a")
	w.begin()
	w.want(0)
	w.write("other.yaml", "x")
	w.write("config.yaml", "a")
	w.want(0)
	w.write("config.yaml", "b")
	w.want(1)
	w.write("config.yaml.new", "c") // as editors do
	if err := os.Rename(filepath.Join(w.dir, "config.yaml.new"), filepath.Join(w.dir, "config.yaml")); err != nil {
		t.Fatal(err)
	}
	w.want(2)
	if err := os.Remove(filepath.Join(w.dir, "config.yaml")); err != nil {
		t.Fatal(err)
	}
	w.want(3)
	w.write("config.yaml", "c")
	w.want(4)
}

// A file that is written where it is may be seen empty before; what it has in the end is
// told of, and nothing after.
func TestWatchInPlace(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	w.files = []string{filepath.Join(w.dir, "config.yaml")}
	w.write("config.yaml", "a")
	w.begin()
	w.want(0)
	if err := os.WriteFile(w.files[0], []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.atLeast(1)
	time.Sleep(10 * settle) // on a busy machine the second change may be told of later
	w.want(w.changes.Load())
}

// What has changed before the watch began is noticed.
func TestWatchBefore(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	w.files = []string{filepath.Join(w.dir, "config.yaml")}
	w.write("config.yaml", "a")
	seen := Look(w.files)
	w.write("config.yaml", "b")
	got := Watch(seen, func() []string { return w.files }, func() { w.changes.Add(1) }, slog.New(slog.DiscardHandler))
	defer got.Close()
	w.want(1)
}

// A file that a change has brought, and that is written while the change is told of, may have
// been read before: it is told of again. One that was there is not.
func TestWatchBroughtMeanwhile(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	config, included, other := filepath.Join(w.dir, "config.yaml"), filepath.Join(w.dir, "included.yaml"), filepath.Join(w.dir, "other.yaml")
	w.write("config.yaml", "a")
	w.write("other.yaml", "x")
	var files atomic.Pointer[[]string]
	files.Store(&[]string{config})
	change := func() {
		if w.changes.Add(1) == 1 { // it has read the files, of which one is missing
			w.write("included.yaml", "b")
		}
		files.Store(&[]string{config, included, other})
	}
	got := Watch(Look([]string{config}), func() []string { return *files.Load() }, change, slog.New(slog.DiscardHandler))
	t.Cleanup(got.Close)
	w.want(0)
	w.write("config.yaml", "c")
	w.want(2)
}

// What goes while a change is told of may have been read before: it is told of, whether it was a
// file, or the only match of a pattern.
func TestWatchGoneMeanwhile(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	w.files = []string{filepath.Join(w.dir, "config.yaml"), filepath.Join(w.dir, "conf.d", "*.yaml"), filepath.Join(w.dir, "token")}
	mkdir(t, filepath.Join(w.dir, "conf.d"))
	w.write("config.yaml", "a")
	w.write("conf.d/a.yaml", "a")
	w.write("token", "a")
	gone := map[int64]string{1: "conf.d/a.yaml", 2: "token"}
	change := func() { // it has read the files
		if name := gone[w.changes.Add(1)]; name != "" {
			if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
	got := Watch(Look(w.files), func() []string { return w.files }, change, slog.New(slog.DiscardHandler))
	t.Cleanup(got.Close)
	w.want(0)
	w.write("config.yaml", "b")
	w.want(3)
}

// The files of a ConfigMap are links into a folder that is replaced as a whole.
func TestWatchConfigMap(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	w.files = []string{filepath.Join(w.dir, "config.yaml")}
	swap := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(w.dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join(version, "config.yaml"), text)
		next := filepath.Join(w.dir, "..data_tmp")
		if err := os.Symlink(version, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(w.dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("..2026_01", "a")
	if err := os.Symlink(filepath.Join("..data", "config.yaml"), w.files[0]); err != nil {
		t.Fatal(err)
	}
	w.begin()
	swap("..2026_02", "b")
	if err := os.RemoveAll(filepath.Join(w.dir, "..2026_01")); err != nil {
		t.Fatal(err)
	}
	w.want(1)
	swap("..2026_03", "c")
	w.want(2)
	swap("..2026_04", "c")
	w.want(2)
}

// A pattern is watched for the files that match it, in a folder that comes and goes, too.
func TestWatchPattern(t *testing.T) {
	w := &watched{t: t, dir: t.TempDir()}
	folder := filepath.Join(w.dir, "conf.d")
	w.files = []string{filepath.Join(folder, "*.yaml")}
	w.begin()
	w.want(0)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("conf.d/a.yaml", "a")
	w.want(1)
	w.write("conf.d/a.yaml.swp", "x")
	w.write("conf.d/.b.yaml", "x")
	w.want(1)
	w.write("conf.d/b.yaml", "b")
	w.want(2)
	if err := os.Rename(folder, filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	w.want(3)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("conf.d/a.yaml", "a")
	w.want(4)
}
