package audit

import (
	"errors"
	"os"
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

// refresh implements target.
func (f *file) refresh() error {
	there, err := os.Stat(f.path)
	if err == nil {
		var open os.FileInfo
		if open, err = f.Stat(); err == nil && os.SameFile(there, open) {
			return nil
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	old := f.File
	f.File = fresh
	return old.Close()
}

// stdout is standard output, which others also use, so it is not closed.
type stdout struct{ *os.File }

func (stdout) refresh() error { return nil }
func (stdout) Close() error   { return nil }
