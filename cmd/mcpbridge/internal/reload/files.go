package reload

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Files are those whose change may be a change of the configuration: the files of the one in
// use, and of one that was read since and can't be used, since mending any of them may mend it.
// Safe for concurrent use.
type Files struct{ used, broken atomic.Pointer[[]string] }

// Use says that a configuration of these files is in use.
func (f *Files) Use(files []string) {
	f.used.Store(&files)
	f.broken.Store(nil)
}

// Failed says why a configuration can't be used.
func (f *Files) Failed(err error) {
	if mistakes := (*config.Error)(nil); errors.As(err, &mistakes) {
		f.Refused(mistakes.Files)
	}
}

// Refused says that a configuration of these files was read, and can't be used.
func (f *Files) Refused(files []string) { f.broken.Store(&files) }

// All returns them.
func (f *Files) All() []string {
	var all []string
	for _, part := range []*[]string{f.used.Load(), f.broken.Load()} {
		if part != nil {
			all = append(all, *part...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
