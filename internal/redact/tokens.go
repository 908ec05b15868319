package redact

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxReplaced bounds the tokens that were replaced and are hidden still: what was sent with
	// one may come back in an error later.
	maxReplaced = 64
	// maxChanges is how many tokens come and go before a table of all is made, which takes long if
	// there are thousands. Those that have come since have a small one above it.
	maxChanges = 256
)

// tokens are secrets that come and go.
type tokens struct {
	known atomic.Pointer[table]

	// mu guards the fields below. It is held while known is made.
	mu       sync.Mutex
	held     map[string]*token
	replaced []string // those of held that nobody uses any more, the first one first
	all      *table   // of those that were held once; nil for none
	fresh    []string // learned since then
	changes  int      // learned and forgotten since then
}

// A token is in use by as many as have learned it.
type token struct {
	forms []string
	users int
}

// Replace learns tokens that are in use for a while, and forgets others, which were learned
// by it: not at once, but when many more were replaced. All that are in use are hidden. A nil
// Redactor learns nothing.
func (r *Redactor) Replace(old []string, with ...string) {
	if r == nil || slices.Equal(old, with) {
		return
	}
	t := &r.tokens
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range with {
		t.useLocked(s)
	}
	for _, s := range old {
		t.leaveLocked(s)
	}
	t.known.Store(t.tableLocked())
}

func (t *tokens) useLocked(s string) {
	if len(s) < MinSecret {
		return
	}
	k := t.held[s]
	if k == nil {
		k = &token{forms: slices.Compact(slices.Sorted(slices.Values(forms(s))))}
		if t.held == nil {
			t.held = make(map[string]*token)
		}
		t.held[s] = k
		t.fresh = append(t.fresh, s)
		t.changes++
	}
	k.users++
}

func (t *tokens) leaveLocked(s string) {
	k := t.held[s]
	if k == nil {
		return
	}
	if k.users--; k.users > 0 {
		return
	}
	if t.replaced = append(t.replaced, s); len(t.replaced) <= maxReplaced {
		return
	}
	if first := t.replaced[0]; t.held[first].users == 0 {
		t.forgetLocked(first)
		return
	}
	t.replaced = t.replaced[1:] // it is in use again
}

// forgetLocked forgets a token that nobody uses.
func (t *tokens) forgetLocked(s string) {
	delete(t.held, s)
	t.replaced = slices.DeleteFunc(t.replaced, func(other string) bool { return other == s })
	t.changes++
}

// tableLocked returns nil if there are no tokens. It may have some that were forgotten just now.
func (t *tokens) tableLocked() *table {
	if t.changes > maxChanges || len(t.held) == 0 {
		t.all, t.fresh, t.changes = nil, nil, 0
		if len(t.held) == 0 {
			return nil
		}
		t.all = t.tableOf(slices.Collect(maps.Keys(t.held)))
	}
	out := t.tableOf(t.fresh)
	if out.below = t.all; t.all != nil {
		for i, pairs := range t.all.pairs {
			out.pairs[i] |= pairs
		}
	}
	return out
}

// tableOf returns a table of those tokens that are held.
func (t *tokens) tableOf(tokens []string) *table {
	out := &table{starts: make(map[[MinSecret]byte][]string)}
	for _, s := range tokens {
		if k := t.held[s]; k != nil {
			for _, form := range k.forms {
				out.add(form)
			}
		}
	}
	return out
}
