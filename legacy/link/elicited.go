package link

import (
	"maps"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A URLElicitation is one URL that the user must visit before a call can succeed.
type URLElicitation struct {
	id     string // the elicitationId, or empty
	Params []byte // of the elicitation
}

// URLElicitations reads the elicitations of a URLElicitationRequiredError.
//
// Spec: 2025-11-25, client/elicitation, URL Elicitation Required Error.
func URLElicitations(e *wire.Error) []URLElicitation {
	var out []URLElicitation
	for item := range wire.Elements(wire.Get(e.Data, "elicitations")) {
		if !wire.IsObject(item) {
			continue
		}
		id, _ := wire.GetString(item, "elicitationId")
		out = append(out, URLElicitation{id: id, Params: wire.AppendEdited(nil, item,
			wire.Edit{Name: "elicitationId"}, wire.Edit{Name: "mode", Value: []byte(`"url"`)})})
	}
	return out
}

// key returns the identity of an elicitation.
func (v URLElicitation) key() string {
	if v.id != "" {
		return "id " + v.id
	}
	return "params " + string(v.Params)
}

// SameElicitations reports whether two lists have the same elicitations, in any order.
func SameElicitations(a, b []URLElicitation) bool {
	keys := func(all []URLElicitation) map[string]bool {
		out := make(map[string]bool, len(all))
		for _, v := range all {
			out[v.key()] = true
		}
		return out
	}
	return maps.Equal(keys(a), keys(b))
}

// A Completion waits until the server has reported elicitations as complete. It may
// do so in any session that required them, and before the user consents. Safe for
// concurrent use.
type Completion struct {
	done chan struct{} // closed when all are complete

	// mu guards pending. It is a leaf.
	mu      sync.Mutex
	pending map[string]bool // by elicitationId: true until it is complete
}

// NewCompletion returns the Completion of elicitations.
func NewCompletion(all []URLElicitation) *Completion {
	w := &Completion{done: make(chan struct{}), pending: make(map[string]bool)}
	for _, v := range all {
		if v.id != "" {
			w.pending[v.id] = true
		}
	}
	return w
}

// Done is closed when all are complete.
func (w *Completion) Done() <-chan struct{} { return w.done }

// complete records that an elicitation is complete. It reports whether it is one of these.
func (w *Completion) complete(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	open, ok := w.pending[id]
	if !open {
		return ok
	}
	w.pending[id] = false
	if !slices.Contains(slices.Collect(maps.Values(w.pending)), true) {
		close(w.done)
	}
	return true
}

// Completions are the Completions that are registered in a session. Safe for
// concurrent use; the zero value is ready to use.
type Completions struct {
	mu  sync.Mutex // guards all; a leaf
	all []*Completion
}

// Add registers a Completion.
func (v *Completions) Add(w *Completion) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, w)
}

// Remove forgets a Completion.
func (v *Completions) Remove(w *Completion) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = slices.DeleteFunc(v.all, func(x *Completion) bool { return x == w })
}

// Complete records that an elicitation is complete. It reports whether a Completion knows it.
func (v *Completions) Complete(id string) (known bool) {
	v.mu.Lock()
	all := slices.Clone(v.all)
	v.mu.Unlock()
	for _, w := range all {
		known = w.complete(id) || known
	}
	return known
}
