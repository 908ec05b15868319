package reload

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// A file behind a link is watched after what the link leads to was gone for a moment, wherever
// on the way that is.
func TestWatchVanishingTarget(t *testing.T) {
	for _, tt := range []struct {
		name string
		// link leads from w.dir/config.yaml to volume/..data/config.yaml, where ..data leads to
		// the folder volume/..1.
		link func(t *testing.T, w *watched, volume string)
	}{
		{"a link to the file", func(t *testing.T, w *watched, volume string) {
			symlink(t, filepath.Join(volume, "..data", "config.yaml"), w.files[0])
		}},
		{"a link to a link", func(t *testing.T, w *watched, volume string) {
			symlink(t, filepath.Join("..data", "config.yaml"), filepath.Join(volume, "config.yaml"))
			symlink(t, filepath.Join(volume, "config.yaml"), w.files[0])
		}},
		{"a link to the folder", func(t *testing.T, w *watched, volume string) {
			symlink(t, filepath.Join(volume, "..data"), filepath.Join(w.dir, "conf"))
			w.files[0] = filepath.Join(w.dir, "conf", "config.yaml")
		}},
		{"a link that has a way up", func(t *testing.T, w *watched, volume string) {
			mkdir(t, filepath.Join(w.dir, "deep"))
			symlink(t, volume, filepath.Join(w.dir, "volume"))
			symlink(t, filepath.Join("..", "volume", "..data", "config.yaml"), filepath.Join(w.dir, "deep", "config.yaml"))
			w.files[0] = filepath.Join(w.dir, "deep", "config.yaml")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			volume := filepath.Join(t.TempDir(), "volume")
			w := &watched{t: t, dir: t.TempDir()}
			w.files = []string{filepath.Join(w.dir, "config.yaml")}
			put := func(version, text string) {
				t.Helper()
				mkdir(t, filepath.Join(volume, version))
				if err := os.WriteFile(filepath.Join(volume, version, "config.yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				symlink(t, version, filepath.Join(volume, "..data"))
			}
			remove := func(path string) {
				t.Helper()
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			put("..1", "a")
			tt.link(t, w, volume)
			w.begin()
			w.want(0)
			remove(filepath.Join(volume, "..data")) // as on volumes that can't replace a link in one step
			w.want(1)
			put("..2", "b")
			w.want(2)
			remove(filepath.Join(volume, "..data"))
			remove(filepath.Join(volume, "..2"))
			w.want(3)
			put("..3", "c")
			w.want(4)
			remove(filepath.Dir(volume)) // with all that is in it, and the folder itself
			w.want(5)
		})
	}
}

// What is watched are the folders in which something on the way to a file may change, or appear.
func TestFolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir()) // on macOS it is below a link
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b/..1", "c"} {
		mkdir(t, filepath.Join(dir, name))
	}
	symlink(t, "..1", filepath.Join(dir, "b", "..data"))
	symlink(t, filepath.Join("..", "b", "..data", "x"), filepath.Join(dir, "a", "x"))
	symlink(t, "loop", filepath.Join(dir, "c", "loop"))
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"a plain file", "c/x", []string{"c"}},
		{"a pattern in a missing folder", "c/none/deep/*.yaml", []string{"c"}},
		{"a link to what is missing, by way of another one", "a/x", []string{"a", "b", "b/..1"}},
		{"a file below a link that leads to itself", "c/loop/x", []string{"c"}},
	} {
		got := []string{}
		for folder := range foldersOf([]string{filepath.Join(dir, tt.file)}) {
			got = append(got, strings.TrimPrefix(folder, dir+string(filepath.Separator)))
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the folders are %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Where the system tells of nothing, a change is found within half a minute, and so is what
// comes after: a mistake, a file that is gone for a while. Nothing is told twice.
func TestWatchPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("a")
		var changes atomic.Int64
		files := []string{file}
		w := watch(Look(files), func() []string { return files }, func() { changes.Add(1) }, slog.New(slog.DiscardHandler), notifier{})
		defer w.Close()
		want := func(when string, n int64) {
			t.Helper()
			time.Sleep(poll + 2*settle)
			if synctest.Wait(); changes.Load() != n {
				t.Errorf("%s: %d changes, want %d", when, changes.Load(), n)
			}
		}
		want("at first", 0)
		write("b")
		want("changed", 1)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		want("gone", 2)
		want("gone for longer", 2)
		write("b")
		want("back", 3)
		time.Sleep(10 * poll)
		want("left alone", 3)
	})
}
