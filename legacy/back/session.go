package back

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A session is one handshake with a server and what goes on under it.
type session struct {
	*wireSession

	// Set before the session is handed out, read-only after.
	negotiated
	watch func() *watch // the profile's; nil, which hears nothing, if none

	tools  *toolbox // the profile's
	polls  *poller
	roots  *roots
	inputs *inputs
	tasks  taskTable
	level  logLevel
	visits visitWatches
}

func newSession(opts *Options, watch func() *watch, roots profileRoots, declaresRoots bool) *session {
	s := &session{
		watch: watch,
		tasks: taskTable{byID: make(map[string]*taskRun)},
	}
	s.wireSession = newWireSession(opts, s)
	s.roots = newRoots(s.wireSession, roots, declaresRoots)
	s.inputs = &inputs{s: s.wireSession, server: &s.negotiated, roots: s.roots, tasks: &s.tasks, pending: make(map[wire.ID]*pendingInput)}
	s.level = logLevel{s: s.wireSession, turn: make(chan struct{}, 1)}
	s.polls = newPoller(s)
	return s
}

// close ends the session upstream. Calls still in flight and pending inputs fail. ctx bounds the
// politeness, not the joining.
func (s *session) close(ctx context.Context) {
	s.lost(mcp.ErrShutdown)
	s.inputs.close(mcp.ErrShutdown)
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
