package back

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/poll"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// A sessionLink is the Link of a session, with its options and log.
type sessionLink struct {
	*link.Link
	opts *Options
	log  *slog.Logger
}

// opens opens a session, or uses an open one; see [pool.Pool.Get].
type opens func(ctx context.Context, p mcp.Profile, private bool) (*session, func(), error)

// A session is one session with a server, from its handshake to its end.
type session struct {
	*sessionLink

	// Set before the session is handed out, read-only after.
	negotiated
	watch func() *watch.Watch // the profile's; returns nil, which ignores changes, if there is none
	own   bool                // it is the first one of a profile that is one legacy client's

	tools       *tasks.Tools // the profile's
	polls       *poll.Poller
	roots       *roots
	inputs      *inputs
	tasks       tasks.Table[*taskHost]   // by their ids at the server
	tokens      tasks.Table[*tasks.Held] // by the progress tokens of the calls that made them
	holding     *tasks.Holding
	open        opens // another session
	level       logLevel
	completions link.Completions
	fresh       atomic.Bool // no observed request has used it
	// mayHaveState says that a client sent more than requests for lists.
	mayHaveState atomic.Bool
	// ownTasks is for how long, in nanoseconds, the server keeps a task of its own that a client holds:
	// the session lasts so long unused, since it ends with it.
	ownTasks atomic.Int64
	held     *upstream.Held // set by connect
	user     soleUser       // noted with mayHaveState
}

// Held implements [pool.Holder].
func (s *session) Held() *upstream.Held { return s.held }

func newSession(opts *Options, watch func() *watch.Watch, roots profileRoots, declaresRoots bool) *session {
	s := &session{watch: watch}
	s.fresh.Store(true)
	s.sessionLink = &sessionLink{Link: link.New(&opts.Options, s), opts: opts, log: opts.Logger}
	s.roots = newRoots(s.sessionLink, roots, declaresRoots)
	s.inputs = &inputs{s: s.sessionLink, server: &s.negotiated, roots: s.roots, tasks: &s.tasks, pending: make(map[wire.ID]*pendingInput), answered: make(map[*pendingInput]bool)}
	s.level = logLevel{s: s.sessionLink, turn: make(chan struct{}, 1)}
	s.polls = poll.New(s.Link, poll.Options{Every: opts.polls(), Timeout: opts.Settings.Timeouts.Own(), Logger: opts.Logger, Changed: s.polled})
	return s
}

// Close ends the session. Pending input requests fail, and then calls in flight: one that is asking
// waits for a goroutine that must still start. ctx bounds the goodbye to the server, not the wait.
func (s *session) Close(ctx context.Context) {
	s.inputs.close(mcp.ErrShutdown)
	s.End()
	s.Link.Close(ctx)
}

func uriParams(uri string) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "uri", Value: wire.Quote(uri)})
}

var (
	_ link.Sink   = (*session)(nil)
	_ pool.Holder = (*session)(nil)
)
