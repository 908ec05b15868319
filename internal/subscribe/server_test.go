package subscribe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const scope = "files/1"

func uris(names ...string) []fanout.Topic { return watchtest.URITopics(scope, names...) }

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
		case s.st.later:
			t.PutOff()
		case t.State:
			s.book.Grant(t, true)
		case t.URI == "bad":
			s.book.Deny(t, errors.New("no such resource"))
		case t.URI == "never" || s.st.slow:
			s.book.Ask(t)
		default:
			s.st.Log.Add("begin " + watchtest.TopicName(t.Topic))
			t.State = true
			s.book.Grant(t, true)
		}
	}
}

func (s *server) Look(t *Topic[bool]) {
	if !t.Needed() {
		if t.State {
			s.st.Log.Add("finish " + watchtest.TopicName(t.Topic))
		}
		s.book.Forget(t)
	}
}

func (s *server) Pump(context.Context) {}
func (s *server) Wake() time.Duration  { return 0 }
func (s *server) Busy() bool           { return s.book.Len() > 0 }
func (s *server) Away() error          { return s.st.away }
func (s *server) Starting() bool       { return false }
func (s *server) Close()               {}

// A stage is a server, the books of it, and an audience.
type stage struct {
	t     *testing.T
	away  error // why the server can't be reached
	slow  bool  // it answers to nothing
	later bool  // it puts off all topics
	*watchtest.Hub
	table *Table[bool, *server]
}

// onStage runs a test in a bubble of its own.
func onStage(t *testing.T, o upstream.Options, test func(t *testing.T, st *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := &stage{t: t}
		aud := watchtest.NewAudience(&watchtest.Journal{})
		o.Name, o.Changes, o.Metrics = "files", aud, aud
		o.Fill(spec.Legacy)
		st.table = NewTable(&o, wake.Backoff{}, func(b *Book[bool], _ mcp.Profile) *server { return &server{st: st, book: b} })
		st.Hub = &watchtest.Hub{Audience: aud, T: t, Scope: scope, Watch: st.table.Watch}
		defer st.table.Close()
		test(t, st)
	})
}

// hear has the server tell of a change.
func (st *stage) hear(topic fanout.Topic) bool {
	return st.table.Of(scope).book.Hear(fanout.Event{Topic: topic}, nil)
}

// on runs f on the loop of the book.
func (st *stage) on(f func(b *Book[bool])) {
	b := st.table.Of(scope).book
	b.Do(st.t.Context(), func() { f(b) })
	synctest.Wait()
}

func (st *stage) wantEnded() {
	st.t.Helper()
	synctest.Wait()
	if st.table.Of(scope) != nil {
		st.t.Fatal("the book is still kept, want none")
	}
}

func fields(names string) []fanout.Topic { return uris(strings.Fields(names)...) }
