package back

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An elicitationRequired is a server's URLElicitationRequiredError (-32042). The call has
// ended; it may succeed if it is sent again after the user has visited the URLs.
type elicitationRequired struct{ err *wire.Error }

func (e *elicitationRequired) Error() string { return e.err.Error() }

// A urlElicitation is one URL that the user must visit before a call can succeed.
type urlElicitation struct {
	id     string // the elicitationId, or empty
	params []byte // of the elicitation
}

// urlElicitations reads the elicitations of a URLElicitationRequiredError.
//
// Spec: 2025-11-25, client/elicitation, URL Elicitation Required Error.
func urlElicitations(e *wire.Error) []urlElicitation {
	var out []urlElicitation
	for item := range wire.Elements(wire.Get(e.Data, "elicitations")) {
		if !wire.IsObject(item) {
			continue
		}
		id, _ := wire.GetString(item, "elicitationId")
		out = append(out, urlElicitation{id: id, params: wire.AppendEdited(nil, item,
			wire.Edit{Name: "elicitationId"}, wire.Edit{Name: "mode", Value: []byte(`"url"`)})})
	}
	return out
}

// key returns the identity of an elicitation.
func (v urlElicitation) key() string {
	if v.id != "" {
		return "id " + v.id
	}
	return "params " + string(v.params)
}

// sameElicitations reports whether two lists have the same elicitations, in any order.
func sameElicitations(a, b []urlElicitation) bool {
	keys := func(all []urlElicitation) map[string]bool {
		out := make(map[string]bool, len(all))
		for _, v := range all {
			out[v.key()] = true
		}
		return out
	}
	return maps.Equal(keys(a), keys(b))
}

// A completionWatch waits until the server has reported elicitations as complete. It may
// do so in any session that required them, and before the user consents. Safe for
// concurrent use.
type completionWatch struct {
	done chan struct{} // closed when all are complete

	// mu guards pending. It is a leaf.
	mu      sync.Mutex
	pending map[string]bool // by elicitationId: true until it is complete
}

func newCompletionWatch(all []urlElicitation) *completionWatch {
	w := &completionWatch{done: make(chan struct{}), pending: make(map[string]bool)}
	for _, v := range all {
		if v.id != "" {
			w.pending[v.id] = true
		}
	}
	return w
}

// complete records that an elicitation is complete. It reports whether the elicitation is
// one of the watch.
func (w *completionWatch) complete(id string) bool {
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

// completionWatches are the completionWatches that are registered in a session. Safe for
// concurrent use; the zero value is ready to use.
type completionWatches struct {
	mu  sync.Mutex // guards all; a leaf
	all []*completionWatch
}

func (v *completionWatches) add(w *completionWatch) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, w)
}

func (v *completionWatches) remove(w *completionWatch) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = slices.DeleteFunc(v.all, func(x *completionWatch) bool { return x == w })
}

// complete records that an elicitation is complete. It reports whether a completionWatch
// knows it.
func (v *completionWatches) complete(id string) (known bool) {
	v.mu.Lock()
	all := slices.Clone(v.all)
	v.mu.Unlock()
	for _, w := range all {
		known = w.complete(id) || known
	}
	return known
}

// missingCapability returns the error for a request that failed because the client lacks a
// capability for input requests.
//
// Spec: 2026-07-28, basic/index, MissingRequiredClientCapabilityError.
func missingCapability(need []byte, text string) error {
	data := wire.AppendEdited(nil, nil, wire.Edit{Name: "requiredCapabilities", Value: need})
	e := wire.Errorf(spec.CodeMissingCapability, "the client lacks a capability that the server needs: %s", text)
	e.Data = data
	return &mcp.Refusal{Err: e}
}

// failedText returns the text of a tool's result if it is an error, and whether it is one.
func failedText(result []byte) (string, bool) {
	if string(wire.Get(result, "isError")) != "true" {
		return "", false
	}
	var text bytes.Buffer
	for block := range wire.Elements(wire.Get(result, "content")) {
		t, _ := wire.GetString(block, "text")
		text.WriteString(t)
	}
	return mcp.Shorten(text.String()), true
}
