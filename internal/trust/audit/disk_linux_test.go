package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// until waits for a condition of the file system, which no clock in a bubble moves.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// smallDisk returns a folder on a file system with 64 KiB; the test is skipped where that
// can't be mounted.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a small disk can't be mounted: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// On a full disk no line is lost nor torn: all of them are there once there is room, and
// until then a required log has requests refused.
func TestFullDisk(t *testing.T) {
	for _, required := range []bool{true, false} {
		dir := smallDisk(t)
		path, ballast := filepath.Join(dir, "audit.log"), filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, bytes.Repeat([]byte("x"), 50<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		counts := &losses{}
		l := open(t, Options{Path: path, Required: required, Metrics: counts})
		n := 0
		until(t, "a full disk", func() bool {
			l.Write(&Record{Name: "line " + strconv.Itoa(n), Reason: strings.Repeat("r", 200)})
			n++
			return counts.failing.Load()
		})
		if l.Refuses() != required {
			t.Errorf("required %v: Refuses() = %v on a full disk", required, l.Refuses())
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		until(t, "room on the disk", func() bool { return !counts.failing.Load() })
		if l.Refuses() || counts.lost.Load() != 0 {
			t.Errorf("required %v: Refuses() = %v with room, %d lines lost", required, l.Refuses(), counts.lost.Load())
		}
		lines := read(t, path)
		for i, line := range lines {
			if line["name"] != "line "+strconv.Itoa(i) {
				t.Fatalf("line %d is %v", i, line)
			}
		}
		if len(lines) != n {
			t.Errorf("%d lines, want %d", len(lines), n)
		}
	}
}

// A device that is always full, and then a file in its place.
func TestDeviceThatIsFull(t *testing.T) {
	for _, required := range []bool{true, false} {
		dir := t.TempDir()
		path, good := filepath.Join(dir, "audit.log"), filepath.Join(dir, "good.log")
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Fatal(err)
		}
		counts := &losses{}
		l := open(t, Options{Path: path, Required: required, Metrics: counts})
		l.Write(&Record{Name: "kept"})
		until(t, "a write that fails", func() bool { return counts.failing.Load() })
		if l.Refuses() != required {
			t.Errorf("required %v: Refuses() = %v", required, l.Refuses())
		}
		if err := errors.Join(os.Symlink(good, path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
		until(t, "a write that succeeds", func() bool { return !counts.failing.Load() })
		if lines := read(t, good); l.Refuses() || len(lines) != 1 || lines[0]["name"] != "kept" {
			t.Errorf("required %v: Refuses() = %v, lines %v", required, l.Refuses(), lines)
		}
	}
}

// Log rotation loses no line: neither by a new file, nor by a copy of one that is then cut.
func TestRotationLosesNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rotate func(path string) error
	}{
		{"rename", func(path string) error { return os.Rename(path, path+".1") }},
		{"create", func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		}},
		{"copytruncate", func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".1", text, 0o600), os.Truncate(path, 0))
		}},
	} {
		for _, required := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "audit.log")
			l := open(t, Options{Path: path, Required: required})
			written := func(file, name string) func() bool {
				return func() bool {
					text, _ := os.ReadFile(file)
					return strings.Contains(string(text), `"`+name+`"`)
				}
			}
			l.Write(&Record{Name: "before"})
			until(t, "the first line", written(path, "before"))
			if err := tt.rotate(path); err != nil {
				t.Fatal(err)
			}
			l.Write(&Record{Name: "after"})
			until(t, "the second line", written(path, "after"))
			first, second := read(t, path+".1"), read(t, path)
			if len(first) != 1 || len(second) != 1 || l.Refuses() {
				t.Errorf("%s, required %v: %v and then %v, Refuses() = %v", tt.name, required, first, second, l.Refuses())
			}
		}
	}
}

// A folder into which the next file can't be made keeps its lines, too.
func TestRotationWithoutAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "audit.log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	counts := &losses{}
	l := open(t, Options{Path: path, Required: true, Metrics: counts})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l.Write(&Record{Name: "kept"})
	until(t, "a file that can't be made", l.Refuses)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	until(t, "a folder", func() bool { return !l.Refuses() })
	if lines := read(t, path); len(lines) != 1 || lines[0]["name"] != "kept" || counts.lost.Load() != 0 {
		t.Errorf("lines %v, %d lost", lines, counts.lost.Load())
	}
}
