package remember

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// MaxAge is how long a record may be used.
	MaxAge = 24 * time.Hour

	// maxFile and maxFiles bound one record, in bytes, and the folder.
	maxFile  = 1 << 20
	maxFiles = 512
)

// Options say where a [Store] keeps its files.
type Options struct {
	// Dir is the folder, as [Dir] returns it; empty means that nothing is
	// remembered. It is made when something is kept.
	Dir string
	// Logger hears, once, of a folder or file that is not used because it is not
	// the user's alone, and at debug of what can't be read; nil means nobody.
	Logger *slog.Logger
}

// A Store keeps records in a folder. It is safe for concurrent use, also by
// several processes: a file is replaced as a whole. A nil *Store remembers
// nothing.
type Store struct {
	// Set by Open, read-only after.
	dir string
	log *slog.Logger

	warned sync.Once
}

// errNotOurs says that a folder or file is not the user's alone.
var errNotOurs = errors.New("not used")

// Open returns the store of a folder, or nil if o names none. It touches no
// file, and there is nothing to close.
func Open(o Options) *Store {
	if o.Dir == "" {
		return nil
	}
	return &Store{dir: o.Dir, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
}

// Lookup returns what is remembered of k. What is older than [MaxAge] is not, and
// is removed; what can't be read as a record is not, either.
func (s *Store) Lookup(k Key) (Record, bool) {
	if s == nil || k == (Key{}) {
		return Record{}, false
	}
	r, err := s.read(k)
	if err != nil {
		if !s.ignored(err) && !errors.Is(err, fs.ErrNotExist) {
			s.log.Debug("remembered server not read", "file", k.file(), "error", err)
		}
		return Record{}, false
	}
	if !r.fresh(time.Now()) {
		s.Forget(k)
		return Record{}, false
	}
	return r, true
}

// Keep remembers r under k, in the place of what was there. A record that can't
// be kept leaves nothing there. That the folder or the file is not the user's
// alone is no error, but logged.
func (s *Store) Keep(k Key, r Record) error {
	if s == nil || k == (Key{}) {
		return nil
	}
	if r.Said.IsZero() {
		r.Said = time.Now()
	}
	data, err := encode(k, r)
	if err == nil {
		err = s.write(k, data)
	}
	if err == nil || s.ignored(err) {
		return nil
	}
	s.Forget(k)
	return fmt.Errorf("remembering a server in %s: %w", s.dir, err)
}

// Forget removes what is remembered of k.
func (s *Store) Forget(k Key) {
	if s == nil {
		return
	}
	root, err := s.folder()
	if err != nil {
		return // there is nothing of ours
	}
	defer closeRoot(root)
	if _, err := ourFile(root, k.file()); err == nil {
		_ = root.Remove(k.file()) // somebody else may have done it
	}
}

func (k Key) file() string { return k.String() + recordSuffix }

// read returns the record in the file of k, of whatever age.
func (s *Store) read(k Key) (Record, error) {
	root, err := s.folder()
	if err != nil {
		return Record{}, err
	}
	defer closeRoot(root)
	if _, err := ourFile(root, k.file()); err != nil {
		return Record{}, err
	}
	f, err := root.Open(k.file())
	if err != nil {
		return Record{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Record{}, err
	}
	if len(data) > maxFile {
		return Record{}, fmt.Errorf("%s is longer than %d bytes", k.file(), maxFile)
	}
	return decode(k, data)
}

// write puts data into the file of k, as a whole or not at all.
func (s *Store) write(k Key, data []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	root, err := s.folder()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	if _, err := ourFile(root, k.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := k.String() + "." + rand.Text() + tempSuffix
	err = fill(root, temp, data)
	if err == nil {
		err = root.Rename(temp, k.file())
	}
	if err != nil {
		_ = root.Remove(temp) // it may not be there
		return err
	}
	sweep(root, time.Now())
	return nil
}

// fill makes a file. Its time is set by our clock, by which the folder is swept.
func fill(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	now := time.Now()
	return root.Chtimes(name, now, now)
}

// folder opens the folder, if it is the user's alone.
func (s *Store) folder() (*os.Root, error) {
	seen, err := os.Lstat(s.dir)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%s is no folder: %w", s.dir, errNotOurs)
	}
	if err := ours(seen); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", s.dir, err, errNotOurs)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	// Who may write to the folder above could have put another one into its place.
	if opened, err := root.Stat("."); err != nil || !os.SameFile(seen, opened) {
		closeRoot(root)
		return nil, fmt.Errorf("%s was replaced: %w", s.dir, errNotOurs)
	}
	return root, nil
}

func closeRoot(root *os.Root) { _ = root.Close() } // nothing is written by it

// ourFile looks at a file of the folder. The error wraps errNotOurs if it is not
// the user's alone, or no regular file: a symbolic link leads elsewhere.
func ourFile(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: %w", name, errNotOurs)
	}
	if err := ours(info); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", name, err, errNotOurs)
	}
	return info, nil
}

// ignored reports whether err says that something is not the user's alone. The
// first time it is logged.
func (s *Store) ignored(err error) bool {
	if !errors.Is(err, errNotOurs) {
		return false
	}
	s.warned.Do(func() {
		s.log.Warn("remembered servers are not used; make the folder and its files yours alone, or remove them", "folder", s.dir, "error", err)
	})
	return true
}
