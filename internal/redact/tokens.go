package redact

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxTokens bounds the tokens that are hidden. The first one is forgotten first.
	maxTokens = 4096
	// maxReplaced bounds those among them that were replaced: what was sent with one may
	// come back in an error later.
	maxReplaced = 64
)

// tokens are secrets that come and go.
type tokens struct {
	known atomic.Pointer[table]

	// mu guards the fields below. It is held while known is made.
	mu       sync.Mutex
	held     map[string]*token
	order    []string // of held, the first one first
	replaced []string // those of held that nobody uses any more, likewise
}

// A token is in use by as many as have learned it.
type token struct {
	forms []string
	users int
}

// Replace learns tokens that are in use for a while, and forgets others, which were learned
// by it: not at once, but when many more were replaced. It bounds what it keeps. A nil
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
		t.order = append(t.order, s)
	}
	if k.users++; len(t.order) > maxTokens {
		t.forgetLocked(t.order[0])
	}
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

// forgetLocked forgets a token, in use or not.
func (t *tokens) forgetLocked(s string) {
	delete(t.held, s)
	is := func(other string) bool { return other == s }
	t.order = slices.DeleteFunc(t.order, is)
	t.replaced = slices.DeleteFunc(t.replaced, is)
}

// tableLocked returns nil if there are no tokens.
func (t *tokens) tableLocked() *table {
	if len(t.order) == 0 {
		return nil
	}
	out := &table{starts: make(map[[MinSecret]byte][]string)}
	for _, s := range t.order {
		for _, form := range t.held[s].forms {
			out.add(form)
		}
	}
	return out
}
