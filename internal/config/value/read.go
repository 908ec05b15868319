package value

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

const (
	// MaxFile bounds a file of the configuration, in bytes.
	MaxFile = 32 << 20
	// fileTime bounds the time in which a file is read: one on a share that hangs has no
	// end.
	fileTime = 5 * time.Second
)

// ErrLarge is the error of a file that is larger than what is read.
var ErrLarge = errors.New("larger")

// ErrStopped is the error of what was given up.
var ErrStopped = errors.New("reading was given up, since mcpbridge is shutting down")

// ReadFile reads a regular file, or one that a link leads to, of at most limit bytes, in 5
// seconds; and a pipe, if it may be one. It gives up once stop is closed, which may be nil.
func ReadFile(path string, limit int64, pipe bool, stop <-chan struct{}) ([]byte, error) {
	data, err := Within(stop, fileTime, func() ([]byte, error) { return readBounded(path, limit, pipe) })
	if errors.Is(err, errLate) {
		err = fmt.Errorf("%s was not read within %v: what has it does not answer; use a file on this machine", path, fileTime)
	}
	return data, err
}

// errLate is the error of what took too long.
var errLate = errors.New("it took too long")

// Within returns what do does, unless that takes longer than most, or stop is closed before.
// Then the goroutine of do goes on until the system answers: nothing can end a call of a
// file system that hangs.
func Within[T any](stop <-chan struct{}, most time.Duration, do func() (T, error)) (out T, err error) {
	type outcome struct {
		out T
		err error
	}
	done := make(chan outcome, 1)
	go func() { // ends when the system answers
		out, err := do()
		done <- outcome{out, err}
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case o := <-done:
		return o.out, o.err
	case <-stop:
		return out, ErrStopped
	case <-late.C:
		return out, errLate
	}
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64, pipe bool) ([]byte, error) {
	if info, err := os.Stat(path); err == nil { // opening a pipe would wait for its writer
		if err = readable(path, info, pipe); err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && info.Size() > limit {
			return nil, largeError(path, limit)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read-only
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, largeError(path, limit)
	}
	return data, nil
}

func largeError(path string, limit int64) error {
	return fmt.Errorf("%s is %w than %s", path, ErrLarge, key.SizeText(limit))
}

// readable reports why a file is not read; nil if it is.
func readable(path string, info fs.FileInfo, pipe bool) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), pipe && mode&fs.ModeNamedPipe != 0:
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name a file in it", path)
	}
	return fmt.Errorf("%s is no regular file, but a pipe or a device; name a file", path)
}
