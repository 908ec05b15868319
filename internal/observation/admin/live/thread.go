package live

import (
	"bytes"
	"crypto/sha256"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A stateID stands for a requestState: a retry brings the one that the client has got.
type stateID [sha256.Size]byte

// thread finds the call to which r brings input, by the requestState in a message from or to the
// client: where client and server are both of 2026-07-28, nothing else tells that they are one call
// to a person. A server may hand out one state twice; then it is the later call of the same tool.
//
// Spec: 2026-07-28, basic/patterns/mrtr.
func (f *Feed) thread(r *record, d trace.Direction, text []byte) {
	if !bytes.Contains(text, []byte(`"requestState"`)) { // most have none, and need not be read
		return
	}
	if d == trace.Sent {
		if state := wire.Get(wire.Get(text, "result"), "requestState"); state != nil {
			f.handOut(r, sha256.Sum256(state))
		}
		return
	}
	if state := wire.Get(wire.Get(text, "params"), "requestState"); state != nil {
		if former := f.handedOut(sha256.Sum256(state)); former != nil && former != r && former.alike(r) {
			r.Follows(former)
		}
	}
}

func (f *Feed) handOut(r *record, id stateID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[r.id] == r {
		f.forgetStateLocked(r)
		f.byState[id], r.state = r, id
	}
}

func (f *Feed) forgetStateLocked(r *record) {
	if f.byState[r.state] == r {
		delete(f.byState, r.state)
	}
}

func (f *Feed) handedOut(id stateID) *record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byState[id]
}

// alike reports whether two calls are of one client, for the same thing.
func (r *record) alike(other *record) bool {
	a, b := &r.call, &other.call // these fields are set before anybody else knows the record
	return a.Server == b.Server && a.Method == b.Method && a.Name == b.Name && a.Caller == b.Caller
}
