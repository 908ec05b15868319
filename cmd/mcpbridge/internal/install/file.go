package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// A File is a host's file with the copy from before mcpbridge was put in.
type File struct {
	given  string // its path
	path   string // of the file itself, where the host has a link to it
	was    fs.FileInfo
	data   []byte
	before []byte // nil if there is no copy
}

// Find returns the first of a host's files that has servers, or else the first that is there: a
// project's file may have other settings alone. It returns "" if there is none.
func Find(host *hostfile.Host, files []string) (first string) {
	for _, file := range files {
		data, err := value.ReadFile(file, value.MaxFile, false, nil)
		if err == nil && host.MayHaveServers(data) {
			return file
		}
		if _, err := os.Stat(file); err == nil && first == "" {
			first = file
		}
	}
	return first
}

// Open reads a host's file, and its copy if there is one.
func Open(path string) (*File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("finding the host's file: %w; name it with --file", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("finding the host's file: %w; name it with --file", err)
	}
	f := &File{given: path, path: real, was: info}
	if f.data, err = value.ReadFile(real, value.MaxFile, false, nil); err != nil {
		return nil, fmt.Errorf("reading the host's file: %w", err)
	}
	f.before, err = value.ReadFile(real+BackupEnding, value.MaxFile, false, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the copy of the host's file: %w", err)
	}
	return f, nil
}

// write replaces a file as a whole: a host that reads it meanwhile sees the old one or
// the new one. It gets the owner of the host's file, and the mode, of which it never had more.
func (f *File) write(path string, data []byte, mode fs.FileMode) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing beside it: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // nobody knows of it
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = keepOwner(tmp, f.was)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("writing beside it: %w", err)
	}
	if path == f.path {
		if err = f.unchanged(); err != nil {
			return err
		}
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("replacing it: %w", err)
	}
	return nil
}

// ErrWritten says that the host has written its file since it was read.
var ErrWritten = errors.New("the host writes it at the moment; try again once it is closed")

// unchanged returns ErrWritten if the file is not as it was read.
func (f *File) unchanged() error {
	now, err := value.ReadFile(f.path, value.MaxFile, false, nil)
	if err == nil && !bytes.Equal(now, f.data) {
		err = ErrWritten
	}
	return err
}

// mode is that of the host's file.
func (f *File) mode() fs.FileMode { return f.was.Mode().Perm() }

// makeDir makes a folder that only the owner of the host's file may read, with those above it that
// are missing.
func (f *File) makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if up := filepath.Dir(dir); up != dir {
		if err := f.makeDir(up); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the folder of what is moved: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("making the folder of what is moved: %w", err)
	}
	return errors.Join(keepOwner(d, f.was), d.Close())
}
