package value

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever is no regular file is refused at once, what a link leads to included: opening a
// pipe would wait for its writer.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file, link, large := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link), os.WriteFile(large, make([]byte, 101), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "", link: "", large: "is larger than", dir: "is a folder; name a file in it", os.DevNull: "is no regular file",
		filepath.Join(dir, "none"): "no such file",
	} {
		data, err := ReadFile(path, 100, true, nil)
		if want == "" && (err != nil || string(data) != "text") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ReadFile(%s) = %q, %v, want %q", path, data, err, want)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 100, false, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of none = %v", err)
	}
}

// A file system that does not answer holds nobody up for longer than said, nor once it is
// stopped.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		hang := func() (int, error) { <-answer; return 1, nil }
		begin := time.Now()
		if n, err := Within(nil, 5*time.Second, hang); n != 0 || !errors.Is(err, errLate) || time.Since(begin) != 5*time.Second {
			t.Errorf("Within = %d, %v after %v", n, err, time.Since(begin))
		}
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		begin = time.Now()
		if n, err := Within(stop, 5*time.Second, hang); n != 0 || !errors.Is(err, ErrStopped) || time.Since(begin) != time.Second {
			t.Errorf("Within = %d, %v after %v", n, err, time.Since(begin))
		}
		close(answer)
		if n, err := Within(nil, 5*time.Second, hang); n != 1 || err != nil {
			t.Errorf("Within = %d, %v", n, err)
		}
	})
}
