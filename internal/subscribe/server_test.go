package subscribe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const scope = "files/1"

func uris(names ...string) []fanout.Topic { return bridgetest.URITopics(scope, names...) }

func tools() fanout.Topic {
	return fanout.Topic{Scope: scope, Kind: fanout.ToolsListChanged}
}

// A server is the simplest driver: it agrees to every topic at once but "bad", and has no
// answer for "never". It notes what it is asked for.
type server struct {
	st   *stage
	book *Book[bool] // whether it tells of the topic
}

func (s *server) Serve(ts []*Topic[bool]) {
	if err := s.Away(); err != nil {
		s.book.Unreached(err)
		return
	}
	s.book.Reached()
	for _, t := range ts {
		switch {
		case t.State:
			s.book.Grant(t, true)
		case t.URI == "bad":
			s.book.Deny(t, errors.New("no such resource"))
		case t.URI == "never" || s.st.slow:
			s.book.Ask(t)
		default:
			s.st.log.Add("begin " + bridgetest.TopicName(t.Topic))
			t.State = true
			s.book.Grant(t, true)
		}
	}
}

func (s *server) Look(t *Topic[bool]) {
	if !t.Needed() {
		if t.State {
			s.st.log.Add("finish " + bridgetest.TopicName(t.Topic))
		}
		s.book.Forget(t)
	}
}

func (s *server) Pump(context.Context) {}
func (s *server) Wake() time.Duration  { return 0 }
func (s *server) Busy() bool           { return s.book.Len() > 0 }
func (s *server) Away() error          { return s.st.away }
func (s *server) Close()               {}

// A stage is a server, the books of it, and an audience.
type stage struct {
	t    *testing.T
	away error // why the server can't be reached
	slow bool  // it answers to nothing
	log  *bridgetest.Journal
	aud  *bridgetest.Audience
	*Table[bool, *server]
}

// onStage runs a test in a bubble of its own.
func onStage(t *testing.T, opts Options, test func(t *testing.T, st *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &bridgetest.Journal{}
		st := &stage{t: t, log: log, aud: bridgetest.NewAudience(log)}
		opts.Name, opts.Changes, opts.Metrics, opts.Retry = "files", st.aud, st.aud, backoff.Backoff{Min: time.Second, Max: time.Second}
		st.Table = NewTable(opts, func(b *Book[bool], _ mcp.Profile) *server { return &server{st: st, book: b} })
		defer st.Close()
		test(t, st)
	})
}

// A stream is one caller of Watch, which does as the gateway does.
type stream struct {
	st      *stage
	honored []fanout.Topic
	release func()
	err     error
}

func (st *stage) listen(want ...fanout.Topic) *stream { return st.listenCtx(st.t.Context(), want...) }

func (st *stage) listenCtx(ctx context.Context, want ...fanout.Topic) *stream {
	s := &stream{st: st}
	st.aud.Want(1, want...)
	s.honored, s.release, s.err = st.Watch(ctx, mcp.Profile{Scope: scope}, want)
	for _, t := range want {
		if !slices.Contains(s.honored, t) {
			st.aud.Want(-1, t)
		}
	}
	return s
}

func (s *stream) close() {
	s.st.aud.Want(-1, s.honored...)
	s.release()
}

func (s *stream) wantHonored(want string) *stream {
	s.st.t.Helper()
	if got := bridgetest.TopicNames(s.honored); s.err != nil || got != want {
		s.st.t.Fatalf("Watch = %q, %v, want %q", got, s.err, want)
	}
	return s
}

// hear has the server tell of a change.
func (st *stage) hear(topic fanout.Topic) bool {
	return st.Of(scope).book.Hear(fanout.Event{Topic: topic}, nil)
}

// on runs f on the loop of the book.
func (st *stage) on(f func(b *Book[bool])) {
	b := st.Of(scope).book
	b.Do(st.t.Context(), func() { f(b) })
	synctest.Wait()
}

// wantLog compares what happened since the last look, in any order within runs of one word.
func (st *stage) wantLog(want ...string) {
	st.t.Helper()
	synctest.Wait()
	if got := bridgetest.SortRuns(st.log.Take()); !slices.Equal(got, bridgetest.SortRuns(want)) {
		st.t.Fatalf("journal: %q, want %q", got, want)
	}
}

func (st *stage) wantEnded() {
	st.t.Helper()
	synctest.Wait()
	if st.Of(scope) != nil {
		st.t.Fatal("the book is still kept, want none")
	}
}

func fields(names string) []fanout.Topic { return uris(strings.Fields(names)...) }
