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
	// MaxAge is how long a record is valid.
	MaxAge = 24 * time.Hour

	// maxFile bounds the size of one record in bytes, and maxFiles the number of records
	// and lists.
	maxFile  = 1 << 20
	maxFiles = 1024
)

// Options configure a [Store].
type Options struct {
	// Dir is the folder, as [Dir] returns it; empty means no store. The first Keep
	// creates it.
	Dir string
	// Logger logs, once, a folder or file that is ignored because others own or can write
	// it, and at debug level what can't be read. Nil means no log.
	Logger *slog.Logger
}

// A Store keeps records in a folder. It is safe for concurrent use, also by several
// processes, since files are replaced atomically. A nil *Store is empty and keeps
// nothing.
type Store struct {
	// Set by Open, read-only after.
	dir string
	log *slog.Logger

	warned sync.Once
}

// errNotOurs is wrapped by the error for a folder or file that others own or can write.
var errNotOurs = errors.New("not used")

// Open returns the store in a folder, or nil if o has none. It does not access files, and
// a Store need not be closed.
func Open(o Options) *Store {
	if o.Dir == "" {
		return nil
	}
	return &Store{dir: o.Dir, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
}

// Lookup returns the record of k. It removes a record that is older than [MaxAge], and
// ignores a file that is not a valid record.
func (s *Store) Lookup(k Key) (Record, bool) {
	if s == nil || k == (Key{}) {
		return Record{}, false
	}
	var r Record
	data, err := s.read(k)
	if err == nil {
		r, err = decode(k, data)
	}
	if err != nil {
		s.unread(k, err)
		return Record{}, false
	}
	if !r.fresh(time.Now()) {
		s.Forget(k)
		return Record{}, false
	}
	return r, true
}

// unread tells of a file that can't be read, unless there is none.
func (s *Store) unread(k Key, err error) {
	if !s.ignored(err) && !errors.Is(err, fs.ErrNotExist) {
		s.log.Debug("remembered server not read", "file", k.file(), "error", err)
	}
}

// Keep stores r as the record of k, and replaces an older one. If r can't be stored, Keep
// removes the older record and returns an error. If others own or can write the folder or
// the file, Keep only logs that.
func (s *Store) Keep(k Key, r Record) error {
	if s == nil || k == (Key{}) {
		return nil
	}
	if r.Said.IsZero() {
		r.Said = time.Now()
	}
	data, err := encode(k, r)
	return s.put(k, data, err)
}

// put replaces the file of k, unless there is an error already. If it can't, it removes the file.
func (s *Store) put(k Key, data []byte, err error) error {
	if err == nil {
		err = s.write(k, data)
	}
	if err == nil || s.ignored(err) {
		return nil
	}
	s.Forget(k)
	return fmt.Errorf("remembering a server in %s: %w", s.dir, err)
}

// Forget removes the record of k.
func (s *Store) Forget(k Key) {
	if s == nil {
		return
	}
	root, err := s.folder()
	if err != nil {
		return // there are no records
	}
	defer closeRoot(root)
	if _, err := ourFile(root, k.file()); err == nil {
		_ = root.Remove(k.file()) // another process may have removed it
	}
}

func (k Key) file() string { return k.String() + recordSuffix }

// read returns the file of k, whatever its age.
func (s *Store) read(k Key) ([]byte, error) {
	root, err := s.folder()
	if err != nil {
		return nil, err
	}
	defer closeRoot(root)
	if _, err := ourFile(root, k.file()); err != nil {
		return nil, err
	}
	f, err := root.Open(k.file())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", k.file(), maxFile)
	}
	return data, nil
}

// write replaces the contents of the file of k atomically.
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
		_ = root.Remove(temp) // it may not exist
		return err
	}
	sweep(root, time.Now())
	return nil
}

// fill creates a file, and sets its time by our clock, because sweep compares with our
// clock.
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

// folder opens the folder, unless others own or can write it.
func (s *Store) folder() (*os.Root, error) {
	seen, err := os.Lstat(s.dir)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: %w", s.dir, errNotOurs)
	}
	if err := ours(seen); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", s.dir, err, errNotOurs)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	// A user who may write to the parent folder could have replaced it.
	if opened, err := root.Stat("."); err != nil || !os.SameFile(seen, opened) {
		closeRoot(root)
		return nil, fmt.Errorf("%s was replaced: %w", s.dir, errNotOurs)
	}
	return root, nil
}

func closeRoot(root *os.Root) { _ = root.Close() } // nothing was written through it

// ourFile returns information about a file of the folder. Its error wraps errNotOurs if
// others own or can write the file, or if it is not a regular file, for example a
// symbolic link.
func ourFile(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: %w", name, errNotOurs)
	}
	if err := ours(info); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", name, err, errNotOurs)
	}
	return info, nil
}

// ignored reports whether err wraps errNotOurs, and logs the first such error.
func (s *Store) ignored(err error) bool {
	if !errors.Is(err, errNotOurs) {
		return false
	}
	s.warned.Do(func() {
		s.log.Warn("remembered servers are not used; make sure that only you own and can write the folder and its files, or remove them", "folder", s.dir, "error", err)
	})
	return true
}
