package back

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const watchScope = "scripted/1"

func uriTopic(uri string) fanout.Topic {
	return fanout.Topic{Scope: watchScope, Kind: fanout.ResourceUpdated, URI: uri}
}

func uriTopics(uris ...string) []fanout.Topic {
	var out []fanout.Topic
	for _, u := range uris {
		out = append(out, uriTopic(u))
	}
	return out
}

func topicName(t fanout.Topic) string {
	if t.Kind == fanout.ResourceUpdated {
		return t.URI
	}
	return t.Kind.String()
}

func topicNames(topics []fanout.Topic) string {
	var out []string
	for _, t := range topics {
		out = append(out, topicName(t))
	}
	return strings.Join(out, " ")
}

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

var errScriptBroken = errors.New("connection reset")

// listen is watchOptions.open.
func (sc *listenScript) listen(ctx context.Context, _ mcp.Profile, want mcp.Filter) (listenStream, error) {
	sc.mu.Lock()
	sc.asked = append(sc.asked, topicNames(want.Topics(watchScope)))
	answer := sc.answer
	sc.mu.Unlock()
	var a scripted
	if answer != nil {
		a = answer(want)
	}
	if err := backoff.Wait(ctx, a.takes); err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.err
	}
	s := &scriptedListen{sc: sc, events: make(chan fanout.Event, 1<<10), gone: make(chan struct{})}
	var granted []fanout.Topic
	for _, t := range want.Topics(watchScope) {
		if !slices.Contains(a.omit, topicName(t)) {
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
		sc.endLocked(s, errEnded)
	}
	return s, nil
}

func (s *scriptedListen) honored() mcp.Filter { return s.granted }

func (s *scriptedListen) next() (fanout.Event, error) {
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

func (s *scriptedListen) close() {
	s.sc.mu.Lock()
	defer s.sc.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.sc.left--
	}
	s.sc.endLocked(s, errLeft)
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
		out = append(out, topicNames(s.granted.Topics(watchScope)))
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

// A watchAudience stands for those who are told: it counts who wants what, and keeps
// what is published.
type watchAudience struct {
	mu     sync.Mutex
	counts map[fanout.Topic]int
	lines  []string
}

func (a *watchAudience) Publish(ev fanout.Event) {
	line := topicName(ev.Topic)
	if ev.URI != ev.Topic.URI {
		line += " as " + ev.URI
	}
	a.add(line + string(ev.Meta))
}

func (a *watchAudience) Wanted(t fanout.Topic) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[t] > 0
}

func (a *watchAudience) End(t fanout.Topic, _ error) { a.add("end " + topicName(t)) }
func (a *watchAudience) Limit(string, string)        {}
func (a *watchAudience) Dropped(_, what string)      { a.add("dropped: " + what) }

func (a *watchAudience) add(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, line)
}

func (a *watchAudience) want(n int, topics ...fanout.Topic) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range topics {
		a.counts[t] += n
	}
}

// A watchStage is a server, the watches of it, and an audience.
type watchStage struct {
	t      *testing.T
	server *listenScript
	aud    *watchAudience
	ws     *watches
	log    *logbook
}

// onWatchStage runs a test in a bubble of its own. All streams must have been closed
// at its end.
func onWatchStage(t *testing.T, opts watchOptions, test func(t *testing.T, st *watchStage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := &watchStage{t: t, server: &listenScript{}, aud: &watchAudience{counts: make(map[fanout.Topic]int)}, log: &logbook{}}
		opts.name, opts.open, opts.changes, opts.metrics, opts.logger = "scripted", st.server.listen, st.aud, st.aud, st.log.logger()
		st.ws = newWatches(opts)
		defer func() {
			st.ws.Close()
			if st.server.left != 0 {
				t.Errorf("after close: %d streams not closed, want none", st.server.left)
			}
		}()
		test(t, st)
	})
}

// A watcher is one caller of Watch, which does as the gateway does.
type watcher struct {
	st      *watchStage
	honored []fanout.Topic
	release func()
	err     error
}

func (st *watchStage) watch(want ...fanout.Topic) *watcher {
	return st.watchCtx(st.t.Context(), want...)
}

func (st *watchStage) watchCtx(ctx context.Context, want ...fanout.Topic) *watcher {
	s := &watcher{st: st}
	st.aud.want(1, want...)
	s.honored, s.release, s.err = st.ws.Watch(ctx, mcp.Profile{Scope: watchScope}, want)
	for _, t := range want {
		if !slices.Contains(s.honored, t) {
			st.aud.want(-1, t)
		}
	}
	return s
}

// goWatch watches beside the test.
func (st *watchStage) goWatch(want ...fanout.Topic) <-chan *watcher {
	c := make(chan *watcher, 1)
	go func() { c <- st.watch(want...) }() // ends with Watch
	return c
}

func (s *watcher) close() {
	s.st.aud.want(-1, s.honored...)
	s.release()
}

func (s *watcher) wantHonored(want string) *watcher {
	s.st.t.Helper()
	if s.err != nil || topicNames(s.honored) != want {
		s.st.t.Fatalf("Watch = %q, %v, want %q", topicNames(s.honored), s.err, want)
	}
	return s
}

// told returns what was published since the last look.
func (st *watchStage) told() []string {
	synctest.Wait()
	st.aud.mu.Lock()
	defer st.aud.mu.Unlock()
	out := st.aud.lines
	st.aud.lines = nil
	return out
}

// wantTold compares what was published since the last look, in any order.
func (st *watchStage) wantTold(want ...string) {
	st.t.Helper()
	got := st.told()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		st.t.Fatalf("told %q, want %q", got, want)
	}
}

// wantCarried compares what each upstream stream carries.
func (st *watchStage) wantCarried(want ...string) {
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
func (st *watchStage) wantRequests(n int) {
	st.t.Helper()
	synctest.Wait()
	if got := st.server.requests(); len(got) != n {
		st.t.Fatalf("%d listen requests %q, want %d", len(got), got, n)
	}
}

// wantEnded checks that the watch has ended with its streams.
func (st *watchStage) wantEnded() {
	st.t.Helper()
	synctest.Wait()
	n := len(st.ws.Loops())
	if n != 0 || len(st.server.carried()) != 0 {
		st.t.Fatalf("%d watches and streams %q, want none", n, st.server.carried())
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
