package tasks

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxTools bounds the tools that are stored for a profile.
const maxTools = 16 << 10

// A Support says whether a tool runs as a task.
type Support uint8

// The kinds of support.
const (
	Forbidden Support = iota // it is called, also if it is unknown
	Optional                 // it can be called, too
	Required
)

// Tools stores which of a profile's tools run as tasks. It learns that from responses
// to tools/list. It is safe for concurrent use.
type Tools struct {
	turn chan struct{} // capacity 1: held while the whole list is read

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	support map[string]Support // by name
	whole   bool               // all tools are known
	changes int                // counts changes of the list
}

// NewTools returns Tools that know no tool.
func NewTools() *Tools {
	return &Tools{turn: make(chan struct{}, 1), support: make(map[string]Support)}
}

// Lookup returns whether a tool runs as a task, and whether that is known.
func (t *Tools) Lookup(name string) (support Support, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	support, known = t.support[name]
	return support, known || t.whole
}

// Learn stores a page of tools/list.
func (t *Tools) Learn(page []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for tool := range wire.Elements(wire.Get(page, "tools")) {
		name, ok := wire.GetString(tool, "name")
		if !ok || len(t.support) >= maxTools {
			continue
		}
		switch support, _ := wire.GetString(wire.Get(tool, "execution"), "taskSupport"); support {
		case "required":
			t.support[name] = Required
		case "optional":
			t.support[name] = Optional
		default:
			t.support[name] = Forbidden
		}
	}
}

// Forget is called when the tools have changed.
func (t *Tools) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	t.whole = false
	clear(t.support)
}

// Find is like Lookup, but if the tool is unknown it reads the list of tools; others wait
// for that. The error says why that failed: then the call should be sent without a task,
// and the server responds with what is wrong.
//
// Spec: 2025-11-25, basic/utilities/tasks, Tool-Level Negotiation.
func (t *Tools) Find(ctx context.Context, name string, list iter.Seq2[json.RawMessage, error]) (Support, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return Forbidden, nil
	}
	if support, known := t.Lookup(name); known {
		return support, nil
	}
	err := t.read(list)
	support, _ := t.Lookup(name)
	return support, err
}

// read reads and stores the whole list of tools.
func (t *Tools) read(list iter.Seq2[json.RawMessage, error]) error {
	t.mu.Lock()
	changes := t.changes
	t.mu.Unlock()
	for page, err := range list {
		if err != nil {
			return err
		}
		t.Learn(page)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.whole = t.changes == changes
	return nil
}
