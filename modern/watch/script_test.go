package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const watchScope = "scripted/1"

func uriTopic(uri string) fanout.Topic { return uriTopics(uri)[0] }

func uriTopics(uris ...string) []fanout.Topic { return watchtest.URITopics(watchScope, uris...) }

func listTopic(k fanout.Kind) fanout.Topic { return fanout.Topic{Scope: watchScope, Kind: k} }

// A listenScript is a server of listen streams, as the streams let a watch see it.
type listenScript struct {
	// answer says what a listen request gets. nil is all that was asked for, at once.
	answer func(want mcp.Filter) scripted

	mu    sync.Mutex
	open  []*scriptedListen
	asked []string // each listen request's topics
	most  int      // streams open at a time
	left  int      // streams not closed by the watch
}

// scripted is the answer to one listen request.
type scripted struct {
	takes time.Duration
	err   error
	omit  []string // topics left out of the acknowledgment
	ends  bool     // gracefully, right after the acknowledgment
}

type scriptedListen struct {
	sc      *listenScript
	granted mcp.Filter
	events  chan fanout.Event
	gone    chan struct{} // closed with err set
	err     error
	closed  bool
}

var (
	errScriptBroken = errors.New("connection reset")
	errClosed       = errors.New("the stream was closed")
)

// listen is Options.Open.
func (sc *listenScript) listen(ctx context.Context, _ mcp.Profile, want mcp.Filter) (Stream, error) {
	sc.mu.Lock()
	sc.asked = append(sc.asked, watchtest.TopicNames(want.Topics(watchScope)))
	answer := sc.answer
	sc.mu.Unlock()
	var a scripted
	if answer != nil {
		a = answer(want)
	}
	if err := wake.Wait(ctx, a.takes); err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.err
	}
	s := &scriptedListen{sc: sc, events: make(chan fanout.Event, 1<<10), gone: make(chan struct{})}
	var granted []fanout.Topic
	for _, t := range want.Topics(watchScope) {
		if !slices.Contains(a.omit, watchtest.TopicName(t)) {
			granted = append(granted, t)
		}
	}
	s.granted = want.Narrow(granted)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.open = append(sc.open, s)
	sc.left++
	sc.most = max(sc.most, len(sc.open))
	if a.ends {
		sc.endLocked(s, ErrEnded)
	}
	return s, nil
}

func (s *scriptedListen) Honored() mcp.Filter { return s.granted }

func (s *scriptedListen) Next() (fanout.Event, error) {
	select { // what was sent before the end comes before it
	case ev := <-s.events:
		return ev, nil
	default:
	}
	select {
	case ev := <-s.events:
		return ev, nil
	case <-s.gone:
		return fanout.Event{}, s.err
	}
}

func (s *scriptedListen) Close() {
	s.sc.mu.Lock()
	defer s.sc.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.sc.left--
	}
	s.sc.endLocked(s, errClosed)
}

func (sc *listenScript) endLocked(s *scriptedListen, err error) {
	if s.err == nil {
		s.err = err
		sc.open = slices.DeleteFunc(sc.open, func(o *scriptedListen) bool { return o == s })
		close(s.gone)
	}
}

// end ends all streams.
func (sc *listenScript) end(err error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, s := range slices.Clone(sc.open) {
		sc.endLocked(s, err)
	}
}

func (sc *listenScript) says(answer func(want mcp.Filter) scripted) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.answer = answer
}

// tell sends a change on every stream that has its topic or, with the URI under, has
// that.
func (sc *listenScript) tell(topic fanout.Topic, under string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, s := range sc.open {
		has := slices.Contains(s.granted.Topics(watchScope), topic) || under != "" && slices.Contains(s.granted.URIs, under)
		if has {
			s.events <- fanout.Event{Topic: topic, Meta: []byte(`{"v":1}`)}
		}
	}
}

// carried returns what each open stream was granted, in the order of their opening.
func (sc *listenScript) carried() []string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	var out []string
	for _, s := range sc.open {
		out = append(out, watchtest.TopicNames(s.granted.Topics(watchScope)))
	}
	return out
}

// peak returns how many streams were open at a time.
func (sc *listenScript) peak() int {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.most
}

// requests returns what was asked since the last time.
func (sc *listenScript) requests() []string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	out := sc.asked
	sc.asked = nil
	return out
}

// A rig is a server, the watches of it, and an audience.
type rig struct {
	t      *testing.T
	server *listenScript
	ws     *Watches
	log    *bridgetest.Log
	takes  atomic.Int64 // how long the audience takes for a change, in nanoseconds
	*watchtest.Hub
}

// Publish implements mcp.Changes, as the Audience does.
func (st *rig) Publish(ev fanout.Event) {
	if takes := time.Duration(st.takes.Load()); takes > 0 {
		time.Sleep(takes)
	}
	st.Audience.Publish(ev)
}

// withRig runs a test in a bubble of its own. All streams must have been closed
// at its end.
func withRig(t *testing.T, opts options, test func(t *testing.T, st *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := &rig{t: t, server: &listenScript{}, log: &bridgetest.Log{}}
		aud := watchtest.NewAudience(&watchtest.Journal{})
		if opts.Options == nil {
			opts.Options = &upstream.Options{}
		}
		opts.Name, opts.Changes, opts.Metrics, opts.Logger = "scripted", st, aud, st.log.Logger()
		opts.Fill(spec.Modern)
		opts.open, opts.starting = st.server.listen, func() bool { return false }
		st.ws = newTable(&opts)
		st.Hub = &watchtest.Hub{Audience: aud, T: t, Scope: watchScope, Watch: st.ws.Watch}
		defer func() {
			st.ws.Close()
			if st.server.left != 0 {
				t.Errorf("after close: %d streams not closed, want none", st.server.left)
			}
		}()
		test(t, st)
	})
}

// told returns what was published since the last look, without the word event.
func (st *rig) told() []string {
	synctest.Wait()
	out := st.Log.Take()
	for i, line := range out {
		out[i] = strings.TrimPrefix(line, "event ")
	}
	return out
}

// wantTold compares what was published since the last look, in any order.
func (st *rig) wantTold(want ...string) {
	st.t.Helper()
	got := st.told()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		st.t.Fatalf("told %q, want %q", got, want)
	}
}

// wantCarried compares what each upstream stream carries.
func (st *rig) wantCarried(want ...string) {
	st.t.Helper()
	synctest.Wait()
	got := st.server.carried()
	for _, lines := range [][]string{got, want} {
		for i, line := range lines {
			names := strings.Fields(line)
			slices.Sort(names)
			lines[i] = strings.Join(names, " ")
		}
	}
	if !slices.Equal(got, want) {
		st.t.Fatalf("streams carry %q, want %q", got, want)
	}
}

// wantRequests compares how many listen requests were made since the last look.
func (st *rig) wantRequests(n int) {
	st.t.Helper()
	synctest.Wait()
	if got := st.server.requests(); len(got) != n {
		st.t.Fatalf("%d listen requests %q, want %d", len(got), got, n)
	}
}

// wantEnded checks that the watch has ended with its streams.
func (st *rig) wantEnded() {
	st.t.Helper()
	synctest.Wait()
	if w := st.ws.Of(watchScope); w != nil || len(st.server.carried()) != 0 {
		st.t.Fatalf("watch %v and streams %q, want none", w != nil, st.server.carried())
	}
}

// omitting leaves topics out of every acknowledgment.
func omitting(names ...string) func(mcp.Filter) scripted {
	return func(mcp.Filter) scripted { return scripted{omit: names} }
}

// refusing refuses each listen request that has one of the URIs.
func refusing(code int64, uris ...string) func(mcp.Filter) scripted {
	return func(want mcp.Filter) scripted {
		for _, uri := range want.URIs {
			if slices.Contains(uris, uri) {
				return scripted{err: fmt.Errorf("server refused: %w", wire.Errorf(code, "no such resource"))}
			}
		}
		return scripted{}
	}
}

func unreachable(mcp.Filter) scripted { return scripted{err: errScriptBroken} }
