//go:build unix

package remember

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Other users can't read records, which may contain private information.
func TestModes(t *testing.T) {
	s, _ := newStore(t)
	keep(t, s, aKey, legacy)
	for path, want := range map[string]os.FileMode{
		s.path(aKey):        0o600,
		s.dir:               0o700 | os.ModeDir,
		filepath.Dir(s.dir): 0o700 | os.ModeDir,
	} {
		if got := modeOf(t, path); got != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
	}
}

// A user who can write a record could change the description that clients receive. So a
// record that others could have written is neither used nor changed, and that is logged
// once.
func TestNotOurs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, s *Store) error
		root  bool // setting it up requires root
	}{
		{"folder writable for others", func(_ *testing.T, s *Store) error { return os.Chmod(s.dir, 0o702) }, false},
		{"folder writable for the group", func(_ *testing.T, s *Store) error { return os.Chmod(s.dir, 0o770) }, false},
		{"another's folder", func(_ *testing.T, s *Store) error { return os.Chown(s.dir, 1234, -1) }, true},
		{"folder by a link", func(_ *testing.T, s *Store) error { return behindLink(s.dir) }, false},
		{"file writable for others", func(_ *testing.T, s *Store) error { return os.Chmod(s.path(aKey), 0o602) }, false},
		{"another's file", func(_ *testing.T, s *Store) error { return os.Chown(s.path(aKey), 1234, -1) }, true},
		{"file by a link", func(_ *testing.T, s *Store) error { return behindLink(s.path(aKey)) }, false},
		{"file by a link outside", func(t *testing.T, s *Store) error {
			outside := filepath.Join(t.TempDir(), "record")
			if err := os.Rename(s.path(aKey), outside); err != nil {
				return err
			}
			return os.Symlink(outside, s.path(aKey))
		}, false},
		{"pipe", func(_ *testing.T, s *Store) error {
			if err := os.Remove(s.path(aKey)); err != nil {
				return err
			}
			return syscall.Mkfifo(s.path(aKey), 0o600)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			s, log := newStore(t)
			keep(t, s, aKey, legacy)
			if err := tt.spoil(t, s); err != nil {
				t.Fatal(err)
			}
			before := modeOf(t, s.path(aKey))
			if r, ok := s.Lookup(aKey); ok {
				t.Errorf("Lookup = %+v, want nothing", r)
			}
			if err := s.Keep(aKey, legacy); err != nil {
				t.Errorf("Keep = %v, want nil", err)
			}
			s.Forget(aKey)
			if after := modeOf(t, s.path(aKey)); after != before {
				t.Errorf("the file was %v and is %v", before, after)
			}
			if got := entries(t, s); len(got) != 1 && !strings.Contains(tt.name, "link") {
				t.Errorf("the folder holds %q", got)
			}
			if got := strings.Count(log.String(), "\n"); got != 1 || !strings.Contains(log.String(), "level=WARN") {
				t.Errorf("logged %s, want one warning", log)
			}
		})
	}
}

// behindLink moves path away and replaces it by a link.
func behindLink(path string) error {
	if err := os.Rename(path, path+".moved"); err != nil {
		return err
	}
	return os.Symlink(path+".moved", path)
}

// Files that others can only read are used.
func TestReadableForOthers(t *testing.T) {
	s, log := newStore(t)
	keep(t, s, aKey, legacy)
	if err := os.Chmod(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Lookup(aKey); !ok || log.Len() != 0 {
		t.Errorf("Lookup in a folder of mode 0755 = %v, logged %s", ok, log)
	}
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}
