package relay

import (
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxInputs bounds the open requests of one server to one client.
const maxInputs = 1000

// inputs contains the open requests of the server. The client knows each by an id of the
// Session.
type inputs struct {
	mu     sync.Mutex          // guards the fields below; a leaf
	server map[wire.ID]wire.ID // the server's id, by the client's
	client map[wire.ID]wire.ID // the client's id, by the server's
	// observed has the calls that open requests belong to, by the client's id, as far as
	// somebody observes them.
	observed map[wire.ID]*trace.Exchange
	last     int64 // last id given to the client
	oldest   int64 // all ids in server are greater
}

// add adds a request with an id of the server, and returns the id for the client. At the
// limit it removes the oldest request and returns the server's id of that. Some requests
// never get a response, such as pings to a client that opens no stream for them.
func (t *inputs) add(theirs wire.ID) (id, oldest wire.ID, full bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest, full = t.giveUpLocked()
	t.last++
	id = wire.NumberID(t.last)
	t.server[id], t.client[theirs] = theirs, id
	return id, oldest, full
}

func (t *inputs) giveUpLocked() (theirs wire.ID, full bool) {
	for full = len(t.server) >= maxInputs; full; {
		t.oldest++
		if theirs, ok := t.takeLocked(wire.NumberID(t.oldest)); ok {
			return theirs, true
		}
	}
	return wire.ID{}, false
}

// take removes the request that has an id at the client, and returns its id at the server.
func (t *inputs) take(id wire.ID) (theirs wire.ID, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takeLocked(id)
}

func (t *inputs) takeLocked(id wire.ID) (theirs wire.ID, ok bool) {
	theirs, ok = t.server[id]
	delete(t.server, id)
	delete(t.observed, id)
	if t.client[theirs] == id {
		delete(t.client, theirs)
	}
	return theirs, ok
}

// putBack adds a request again whose response did not reach the server.
func (t *inputs) putBack(id, theirs wire.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.client[theirs].IsZero() {
		return // the server has sent another request with the same id
	}
	t.server[id], t.client[theirs] = theirs, id
	if n, ok := id.Int(); ok {
		t.oldest = min(t.oldest, n-1)
	}
}

// withdraw removes the request that has an id at the server, and returns its id at the
// client.
func (t *inputs) withdraw(theirs wire.ID) (id wire.ID, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok = t.client[theirs]; ok {
		delete(t.client, theirs)
		delete(t.server, id)
		delete(t.observed, id)
	}
	return id, ok
}
