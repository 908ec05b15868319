package back

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// goodbyeTimeout bounds a message that nobody waits for, and the end of a
	// session.
	goodbyeTimeout = 5 * time.Second
	// partingTime is how long the last messages to a server on a connection may take,
	// which end with the connection.
	partingTime = 200 * time.Millisecond
	// maxBackground bounds the messages being sent that nobody waits for, answers
	// to the server's questions among them.
	maxBackground = 1024
)

// A link carries the messages of one session. Its methods are safe for
// concurrent use; what arrives goes to session.receive.
type link interface {
	// exchange sends frame, the request c, and returns once c is settled, ctx
	// has ended, or it is known that no answer will come. The error tells why,
	// if c is not settled: a *failure, or ctx's cause.
	exchange(ctx context.Context, c *call, frame []byte) error
	// send sends a notification or a response.
	send(ctx context.Context, frame []byte) error
	// listen opens a way for what the server sends unasked, if initialize has not
	// done so. It returns when the way is open, or will not be for a while.
	listen(ctx context.Context)
	// initialized is told that notifications/initialized was sent.
	initialized(ctx context.Context)
	// open reports whether there is such a way at the moment.
	open() bool
	// wakes reports whether exchange gives the notes of its call to the caller
	// when told through call.wake. If not it waits for what can't be woken.
	wakes() bool
	// close ends the session upstream as far as it still exists and joins what
	// the link started. ctx bounds the politeness.
	close(ctx context.Context)
}

// A session is one handshake with a server and what goes on under it.
type session struct {
	// Set before the session is handed out, read-only after.
	opts         *Options
	log          *slog.Logger
	link         link
	watch        func() *watch // the profile's; nil, which hears nothing, if none
	revision     spec.Revision
	caps         mcp.ServerCapabilities
	serverInfo   json.RawMessage // nil if the server gave none
	instructions json.RawMessage // nil if the server gave none

	onAmbiguous func()       // told when streams don't tell whose a question is
	roots       profileRoots // the profile's
	asksRoots   bool         // the client declared roots
	tools       *toolbox     // the profile's
	relay       *relay       // nil unless the session is one client's own
	polls       *poller

	ids  *atomic.Int64 // the last one of a request; the endpoint's, if there is one
	gone chan struct{} // closed when the session is lost or ended
	// rootsTurn has capacity 1: who has put something in puts the server right
	// about roots.
	rootsTurn chan struct{}
	useless   atomic.Int64          // messages that nobody needed
	odd       transport.WarnLimiter // tells of what can't be read
	greeted   atomic.Bool           // the server has had the time to ask as it starts
	// turn has capacity 1: who has put something in may set the upstream's log
	// level.
	turn chan struct{}

	// mu guards the fields below. It is held for map work only, and may be held
	// when a call's mu is taken.
	mu         sync.Mutex
	calls      map[int64]*call
	level      spec.LogLevel // the upstream's; empty if never set
	err        error         // why gone is closed
	background int           // messages being sent that nobody waits for
	sealed     bool          // no more of these may start

	// What the server asks.
	questions map[wire.ID]*question // the open ones, by the server's id
	changes   chan struct{}         // closed when calls end, park or resume; nil if nobody waits
	haunted   time.Time             // until then a question may be a cancelled call's
	tasks     map[string]*taskRun   // under way, by their ids
	visits    map[*visitWatch]struct{}

	rootsFor   *call       // whose caller the next roots/list is for
	rootsOpen  int         // open questions about roots that belong to no call that was sent
	rootsStale bool        // the server was answered provisionally
	rootsOf    *rootsOwner // whose roots the server has; nil if it was never given any
	rootsNews  bool        // the next roots/list asks for what is known

	opened    time.Time // when the handshake was done
	greeting  bool      // greet waits for the server
	rootsBusy int       // open questions about roots
	rootsDone time.Time // when the last of them ended

	sending sync.WaitGroup // counts background, and questions
}

func newSession(opts *Options, watch func() *watch) *session {
	s := &session{
		opts:  opts,
		log:   opts.Logger,
		watch: watch,
		ids:   new(atomic.Int64),
		gone:  make(chan struct{}),
		turn:  make(chan struct{}, 1),
		calls: make(map[int64]*call),

		rootsTurn: make(chan struct{}, 1),
		questions: make(map[wire.ID]*question),
		tasks:     make(map[string]*taskRun),
		visits:    make(map[*visitWatch]struct{}),
	}
	s.polls = newPoller(s)
	return s
}

// done is closed when the session is lost or ended.
func (s *session) done() <-chan struct{} { return s.gone }

// alive reports whether the session was neither lost nor ended.
func (s *session) alive() bool {
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}

// sendLater sends a message that nobody waits for.
func (s *session) sendLater(ctx context.Context, frame []byte) {
	s.later(ctx, func(ctx context.Context) {
		if err := s.link.send(ctx, frame); err != nil {
			s.log.Debug("sending to server", "error", cause(err))
		}
	})
}

// later runs send, for which nobody waits. It never blocks: when too many are
// under way the message is dropped.
func (s *session) later(ctx context.Context, send func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed || s.background >= maxBackground {
		s.drop("outgoing")
		return
	}
	s.background++
	// It ends when the message has left or goodbyeTimeout is over; close waits.
	s.sending.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
		defer cancel()
		send(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.background--
	})
}

// start runs f, which ends with the session; close waits. It reports false if the
// session has ended.
func (s *session) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return false
	}
	s.sending.Go(f)
	return true
}

// fail says that the session is gone, and ends every call under it that waits
// for more than its own stream.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	close(s.gone)
	s.mu.Unlock()
}

// ending returns why the session is gone, nil if it is not.
func (s *session) ending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// failCalls ends the calls in flight: no answer will come.
func (s *session) failCalls(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.cancel(&failure{cause: err, fate: mayHaveRun, lost: true})
	}
}

// close ends the session upstream. Calls still in flight fail. ctx bounds the
// politeness, not the joining.
func (s *session) close(ctx context.Context) {
	s.fail(mcp.ErrShutdown)
	s.failCalls(mcp.ErrShutdown)
	s.mu.Lock()
	s.sealed = true
	for _, q := range s.questions {
		q.cancel(mcp.ErrShutdown)
	}
	s.mu.Unlock()
	sent := make(chan struct{})
	go func() { // ends with what is sent, which the link's end cuts short
		defer close(sent)
		s.sending.Wait() // each bounded by goodbyeTimeout
	}()
	if _, ok := s.link.(*connLink); ok { // a child that does not read is no reason to wait
		late := time.AfterFunc(partingTime, func() { s.link.close(ctx) })
		defer late.Stop()
	}
	<-sent
	s.link.close(ctx)
}

// takeError gives the answer's bytes back and returns its error, which does not
// alias them any more.
func (a *answer) takeError() *wire.Error {
	e := *a.err
	e.Data = bytes.Clone(e.Data)
	a.free()
	return &e
}

// free gives the answer's bytes back.
func (a *answer) free() {
	if a.release != nil {
		a.release()
	}
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
