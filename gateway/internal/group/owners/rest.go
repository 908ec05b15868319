package owners

import (
	"slices"
	"sync"
)

const maxRestNames = 2048 // names that are known of a list after its first page

// A Rest has names of a list after its first page, for people who look. Its zero value is empty, and
// it is safe for concurrent use.
type Rest struct {
	// mu guards the fields below. It is held for slice work only.
	mu    sync.Mutex
	names []string
	has   map[string]struct{} // names; nil if there are none
	whole bool                // the last page was among those that were read, and nothing was left out
}

// Add adds the names of a page, which may be the last one. Clients read the same pages again.
func (r *Rest) Add(names []string, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole {
		return
	}
	if r.has == nil {
		r.has = make(map[string]struct{})
	}
	for _, name := range names {
		if len(r.names) == maxRestNames {
			return
		}
		if _, has := r.has[name]; !has {
			r.names, r.has[name] = append(r.names, name), struct{}{}
		}
	}
	r.whole = last
}

// Clear forgets all names.
func (r *Rest) Clear() {
	r.mu.Lock()
	r.names, r.has, r.whole = nil, nil, false
	r.mu.Unlock()
}

// AppendTo appends the names that others don't have to these, and reports whether that is all.
func (r *Rest) AppendTo(names []string) (all []string, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, r.whole
}
