package remember

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// newStore returns a store whose folder does not exist yet, and its log.
func newStore(t *testing.T) (*Store, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	dir := filepath.Join(t.TempDir(), "mcpbridge", "servers")
	return Open(Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}), log
}

func keep(t *testing.T, s *Store, k Key, r Record) {
	t.Helper()
	if err := s.Keep(k, r); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) path(k Key) string { return filepath.Join(s.dir, k.file()) }

// legacy is any record.
var legacy = Record{Era: spec.Legacy}

func TestStore(t *testing.T) {
	s, log := newStore(t)
	other := Key{1}
	if r, ok := s.Lookup(aKey); ok {
		t.Errorf("Lookup in no folder = %+v", r)
	}
	s.Forget(aKey)
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("looking made the folder")
	}
	keep(t, s, aKey, legacy)
	keep(t, s, aKey, Record{Era: spec.Modern})
	keep(t, s, other, legacy)
	if r, ok := s.Lookup(aKey); !ok || r.Era != spec.Modern || time.Since(r.Said).Abs() > time.Minute {
		t.Errorf("Lookup = %+v, %v, want what was kept last, just said", r, ok)
	}
	s.Forget(aKey)
	if _, ok := s.Lookup(aKey); ok {
		t.Error("Forget left the record")
	}
	if _, ok := s.Lookup(other); !ok {
		t.Error("Forget took another server's record")
	}
	keep(t, s, Key{}, legacy)
	if _, ok := s.Lookup(Key{}); ok || log.Len() != 0 {
		t.Errorf("the zero key has a record: %v; logged %s", ok, log)
	}
	if got := entries(t, s); len(got) != 1 {
		t.Errorf("the folder holds %q, want one record", got)
	}
}

func entries(t *testing.T, s *Store) []string {
	t.Helper()
	all, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Name())
	}
	return out
}

// If a record can't be stored, the older one is removed.
func TestKeepRefused(t *testing.T) {
	s, _ := newStore(t)
	keep(t, s, aKey, legacy)
	if err := s.Keep(aKey, Record{}); err == nil {
		t.Error("a record without an era was kept")
	}
	if r, ok := s.Lookup(aKey); ok {
		t.Errorf("Lookup = %+v, want nothing", r)
	}
}

// A file that is not a valid record is ignored, and replaced by the next record.
func TestGarbage(t *testing.T) {
	s, log := newStore(t)
	keep(t, s, aKey, legacy)
	good, err := os.ReadFile(s.path(aKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"empty", nil},
		{"cut off", good[:len(good)/2]},
		{"zeros", make([]byte, 100)},
		{"another version", bytes.Replace(good, []byte(`"format":1`), []byte(`"format":2`), 1)},
		{"white space without end", append(good, bytes.Repeat([]byte(" "), maxFile)...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log.Reset()
			if err := os.WriteFile(s.path(aKey), tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if r, ok := s.Lookup(aKey); ok {
				t.Errorf("Lookup = %+v, want nothing", r)
			}
			if !strings.Contains(log.String(), "level=DEBUG") {
				t.Errorf("logged %q, want a line at debug", log)
			}
			keep(t, s, aKey, legacy)
			if _, ok := s.Lookup(aKey); !ok {
				t.Error("it was not replaced")
			}
		})
	}
}

// A record is valid for a day by its own time, and then removed.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore(t)
		keep(t, s, aKey, legacy)
		time.Sleep(MaxAge)
		if _, ok := s.Lookup(aKey); !ok {
			t.Fatal("a record of a day ago is not used")
		}
		time.Sleep(time.Second)
		if _, ok := s.Lookup(aKey); ok {
			t.Error("a record of more than a day ago is used")
		}
		if got := entries(t, s); len(got) != 0 {
			t.Errorf("the folder holds %q", got)
		}
		keep(t, s, aKey, Record{Era: spec.Legacy, Said: time.Now().Add(time.Hour)})
		if _, ok := s.Lookup(aKey); ok {
			t.Error("a record of the future is used")
		}
	})
}

// Keep removes expired records and the temporary files of killed processes, but no files
// with other names.
func TestSweepByAge(t *testing.T) {
	s, _ := newStore(t)
	keep(t, s, aKey, legacy)
	now := time.Now()
	for name, age := range map[string]time.Duration{
		Key{1}.file():                  MaxAge + time.Minute,
		Key{2}.file():                  MaxAge - time.Minute,
		Key{3}.file():                  -MaxAge - time.Minute,
		Key{4}.String() + ".AB.tmp":    2 * unfinished,
		Key{5}.String() + ".AB.tmp":    0,
		"README":                       10 * MaxAge,
		"0123.json":                    10 * MaxAge,
		Key{6}.String() + ".json.orig": 10 * MaxAge,
	} {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		touch(t, path, now.Add(-age))
	}
	keep(t, s, aKey, legacy)
	want := map[string]bool{
		aKey.file(): true, Key{2}.file(): true, Key{5}.String() + ".AB.tmp": true,
		"README": true, "0123.json": true, Key{6}.String() + ".json.orig": true,
	}
	got := entries(t, s)
	for _, name := range got {
		if !want[name] {
			t.Errorf("%s was left", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files are left, want %d: %q", len(got), len(want), got)
	}
}

// The number of records is bounded: the oldest are removed.
func TestSweepByNumber(t *testing.T) {
	s, _ := newStore(t)
	keep(t, s, aKey, legacy)
	now := time.Now()
	for i := range maxFiles + 9 {
		path := s.path(Key{1, byte(i >> 8), byte(i)})
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		touch(t, path, now.Add(-time.Duration(i+1)*time.Second))
	}
	last := Key{2}
	keep(t, s, last, legacy)
	if got := len(entries(t, s)); got != maxFiles {
		t.Errorf("%d files, want %d", got, maxFiles)
	}
	for _, tt := range []struct {
		k     Key
		there bool
	}{{last, true}, {aKey, true}, {Key{1, 0, 0}, true}, {Key{1, byte((maxFiles + 8) >> 8), byte((maxFiles + 8) & 0xff)}, false}} {
		if _, err := os.Stat(s.path(tt.k)); (err == nil) != tt.there {
			t.Errorf("%s is there: %v, want %v", tt.k, err == nil, tt.there)
		}
	}
}

// Stores of one folder, as in several processes, don't disturb each other: a reader
// always finds a complete record.
func TestConcurrentStores(t *testing.T) {
	s, log := newStore(t)
	keep(t, s, aKey, legacy)
	var wg sync.WaitGroup
	for i := range 8 {
		mine := Open(Options{Dir: s.dir})
		wg.Go(func() {
			for n := range 50 {
				err := mine.Keep(aKey, Record{Era: spec.Legacy, Revisions: []spec.Revision{spec.Revision(fmt.Sprint(i, n))}})
				if err != nil {
					t.Errorf("Keep: %v", err)
				}
				if r, ok := s.Lookup(aKey); !ok || r.Era != spec.Legacy {
					t.Errorf("Lookup = %+v, %v", r, ok)
				}
				mine.Forget(Key{byte(i)})
			}
		})
	}
	wg.Wait()
	if got := entries(t, s); len(got) != 1 || log.Len() != 0 {
		t.Errorf("the folder holds %q, logged %s", got, log)
	}
}

// A record that could not be written leaves no file behind.
func TestKeepFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(Options{Dir: filepath.Join(file, "servers")})
	if err := s.Keep(aKey, legacy); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Keep below a file = %v, want an error that names it", err)
	}
	if _, ok := s.Lookup(aKey); ok {
		t.Error("there is a record")
	}
}
