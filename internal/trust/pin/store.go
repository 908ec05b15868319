package pin

import (
	"context"
	"errors"
	"time"
)

// A Store keeps what was accepted of servers. It is safe for concurrent use, also by several
// processes.
type Store interface {
	// Load returns what is kept of a server, and its version. If nothing is, that is an empty
	// File of the empty version.
	Load(ctx context.Context, server string) (*File, string, error)
	// Swap replaces what is kept of f.Server, and returns the version of f. The error is
	// [ErrReplaced] if what is kept has another version than the one that is to be replaced.
	Swap(ctx context.Context, f *File, version string) (string, error)
	// Stale reports whether something else may be kept than what was loaded at a time, and had
	// a version.
	Stale(server, version string, loaded time.Time) bool
}

// ErrReplaced says that another process has replaced what is kept.
var ErrReplaced = errors.New("another process has replaced it meanwhile")

// tries bounds how often what others replace is read again.
const tries = 5

// Update has change made to what is kept of a server, whatever other processes do at the same
// time. change may be called several times, with a File of its own each.
func Update(ctx context.Context, s Store, server string, change func(*File)) (f *File, err error) {
	for range tries {
		var version string
		if f, version, err = s.Load(ctx, server); err != nil {
			return nil, err
		}
		f = f.with(nil, f.Complete)
		change(f)
		if _, err = s.Swap(ctx, f, version); !errors.Is(err, ErrReplaced) {
			return f, err
		}
	}
	return nil, err
}
