package audit

import (
	"errors"
	"os"
	"syscall"
)

// mode is the mode of the file, which is confidential: it says who does what.
const mode = 0o600

// A file is a file to which lines are appended.
type file struct {
	path string
	*os.File
}

func openFile(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, mode)
	if err != nil {
		return nil, err
	}
	return &file{path, f}, nil
}

// refresh implements target. A file that is empty may have been cut by log rotation.
func (f *file) refresh() (fresh bool, err error) {
	there, err := os.Stat(f.path)
	if err == nil {
		var open os.FileInfo
		if open, err = f.Stat(); err == nil && os.SameFile(there, open) {
			return open.Size() == 0, nil
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	next, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, mode)
	if err != nil {
		return false, err
	}
	old := f.File
	f.File = next
	_ = old.Close() // what it has was written
	return true, nil
}

// Sync implements target. What is no file on a disk has nothing to sync.
func (f *file) Sync() error {
	err := f.File.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// stdout is standard output, which others also use, so it is not closed.
type stdout struct{ *os.File }

func (stdout) refresh() (bool, error) { return false, nil }
func (stdout) Sync() error            { return nil }
func (stdout) Close() error           { return nil }
