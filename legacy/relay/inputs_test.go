package relay

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func newInputs() *inputs {
	return &inputs{server: make(map[wire.ID]wire.ID), client: make(map[wire.ID]wire.ID)}
}

// The server's ids and those of the client belong together until one side is done.
func TestInputIDs(t *testing.T) {
	in := newInputs()
	id, _, _ := in.add(wire.StringID("a"))
	if theirs, ok := in.take(id); !ok || theirs != wire.StringID("a") {
		t.Errorf("take(%v) = %v, %v, want a", id, theirs, ok)
	}
	if theirs, ok := in.take(id); ok {
		t.Errorf("take(%v) again = %v, want none", id, theirs)
	}
	in.putBack(id, wire.StringID("a")) // the response did not reach the server
	if got, ok := in.withdraw(wire.StringID("a")); !ok || got != id {
		t.Errorf("withdraw(a) = %v, %v, want %v", got, ok, id)
	}
	if theirs, ok := in.take(id); ok {
		t.Errorf("take(%v) of what was withdrawn = %v, want none", id, theirs)
	}
}

// A server may use an id again once it got the response, even where that was on its way
// back to the client.
func TestInputIDIsUsedAgain(t *testing.T) {
	in := newInputs()
	first, _, _ := in.add(wire.StringID("a"))
	in.take(first)
	second, _, _ := in.add(wire.StringID("a"))
	in.putBack(first, wire.StringID("a"))
	if got, ok := in.withdraw(wire.StringID("a")); !ok || got != second {
		t.Errorf("withdraw(a) = %v, %v, want the second, %v", got, ok, second)
	}
}

// At the limit the request that has been open longest gives way to the next.
func TestInputLimit(t *testing.T) {
	in := newInputs()
	for n := range maxInputs {
		if _, _, full := in.add(wire.NumberID(int64(n))); full {
			t.Fatalf("request %d was too many", n)
		}
	}
	in.take(wire.NumberID(1)) // the oldest got its response
	if _, _, full := in.add(wire.StringID("next")); full {
		t.Error("a request was given up though there was room")
	}
	if _, oldest, full := in.add(wire.StringID("one more")); !full || oldest != wire.NumberID(1) {
		t.Errorf("given up: %v, %v, want the second, 1", oldest, full)
	}
}
