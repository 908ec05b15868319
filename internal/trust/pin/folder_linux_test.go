package pin

import (
	"errors"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// limitFiles has no file grow beyond some bytes, until the returned function is called: the
// beginning of a text fits, as on a disk that becomes full.
func limitFiles(t *testing.T, size uint64) (end func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
}

// What can't be stored leaves no file behind, however often that is tried, and what was stored
// before stays.
func TestFullDisk(t *testing.T) {
	d := Folder(t.TempDir())
	store := func(definition, version string) (string, error) {
		return d.Swap(t.Context(), newFile("files").with([]found{{"read", formOf([]byte(definition))}}, true), version)
	}
	version, err := store(good, "")
	if err != nil {
		t.Fatal(err)
	}
	end := limitFiles(t, 64)
	for range 3 {
		if _, err = store(evil, version); !errors.Is(err, syscall.EFBIG) {
			break
		}
	}
	end()
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("Swap on a full disk = %v, want %v", err, syscall.EFBIG)
	}
	if left, _ := filepath.Glob(filepath.Join(string(d), "pins", "files.json*")); len(left) != 1 {
		t.Errorf("files of the server = %q, want one", left)
	}
	if _, now, err := d.Load(t.Context(), "files"); err != nil || now != version {
		t.Errorf("Load = version %q, %v, want %q", now, err, version)
	}
}
