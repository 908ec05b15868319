package back

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A session is one handshake with a server and what goes on under it.
type session struct {
	*wireSession

	// Set before the session is handed out, read-only after.
	negotiated
	watch func() *watch // the profile's; nil, which hears nothing, if none

	onAmbiguous func()   // told when streams don't tell whose a question is
	tools       *toolbox // the profile's
	polls       *poller
	roots       *roots

	// turn has capacity 1: who has put something in may set the upstream's log
	// level.
	turn chan struct{}

	// mu guards the fields below. It is held for map work only, and may be held
	// when roots.mu, calls.mu, out.mu or a call's mu is taken.
	mu    sync.Mutex
	level spec.LogLevel // the upstream's; empty if never set

	// What the server asks.
	closed    bool                  // no more of it is taken in
	questions map[wire.ID]*question // the open ones, by the server's id
	haunted   time.Time             // until then a question may be a cancelled call's
	tasks     map[string]*taskRun   // under way, by their ids
	visits    map[*visitWatch]struct{}
}

func newSession(opts *Options, watch func() *watch, roots profileRoots, declaresRoots bool) *session {
	s := &session{
		watch:     watch,
		turn:      make(chan struct{}, 1),
		questions: make(map[wire.ID]*question),
		tasks:     make(map[string]*taskRun),
		visits:    make(map[*visitWatch]struct{}),
	}
	s.wireSession = newWireSession(opts, s)
	s.roots = newRoots(s.wireSession, roots, declaresRoots)
	s.polls = newPoller(s)
	return s
}

// close ends the session upstream. Calls still in flight and questions fail. ctx bounds the
// politeness, not the joining.
func (s *session) close(ctx context.Context) {
	s.lost(mcp.ErrShutdown)
	s.mu.Lock()
	s.closed = true
	for _, q := range s.questions {
		q.cancel(mcp.ErrShutdown)
	}
	s.mu.Unlock()
	s.wireSession.close(ctx)
}

func uriParams(uri string) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(uri)})
}

// offers implements watched.
func (s *session) offers() offers {
	return offers{
		tools:     s.caps.Tools,
		prompts:   s.caps.Prompts,
		resources: s.caps.Resources,
		subscribe: s.caps.Subscribe || s.synthesizes().has(fanout.ResourceUpdated),
		channel:   s.link.open(),
		polls:     s.synthesizes(),
	}
}

var _ watched = (*session)(nil)
