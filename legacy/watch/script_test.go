package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const testScope = "files/1"

func uriTopic(uri string) fanout.Topic { return uriTopics(uri)[0] }

func uriTopics(uris ...string) []fanout.Topic { return watchtest.URITopics(testScope, uris...) }

func listTopic(k fanout.Kind) fanout.Topic { return fanout.Topic{Scope: testScope, Kind: k} }

// A script is what a server does, as sessions with it let the watch see.
type script struct {
	// answer says how long the server takes for a call, half of it before it
	// acts, and what it says. nil is yes, at once.
	answer func(method, uri string) (time.Duration, error)

	// dial is how long opening a session takes. deaf: even if nobody waits.
	dial time.Duration
	deaf bool
	// stuck calls don't end with their session.
	stuck bool

	mu       sync.Mutex
	offers   Offers
	away     error // why there is no session
	session  *scriptedSession
	held     int // sessions held
	opened   int
	calls    []string // "subscribe a", in the order in which they were sent
	inFlight map[string]int
	overlaps []string // URIs that two calls were about at a time
	log      *watchtest.Journal
}

type scriptedSession struct {
	s      *script
	gone   chan struct{}
	active map[string]bool // what the server would tell of
}

var allOffers = Offers{Lists: mcp.Lists{Tools: true, Prompts: true, Resources: true}, Subscribe: true, Channel: true}

func (s *script) hold(ctx context.Context, _ mcp.Profile) (Session, func(), error) {
	if s.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-time.After(s.dial):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return nil, nil, s.away
	}
	if s.session == nil {
		s.session = &scriptedSession{s: s, gone: make(chan struct{}), active: make(map[string]bool)}
		s.opened++
	}
	s.held++
	return s.session, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held--
	}), nil
}

// lose ends the session, and keeps others from being opened if away is not nil.
func (s *script) lose(away error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
	if s.session != nil {
		close(s.session.gone)
		s.session = nil
	}
}

func (s *script) set(change func(s *script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *script) count(what func(s *script) int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return what(s)
}

func (s *script) callsOf(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range s.calls {
		if strings.HasPrefix(c, prefix) {
			out = append(out, c)
		}
	}
	return out
}

// subscribed returns what the server would tell of, in order.
func (s *script) subscribed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.session.active))
}

func (ss *scriptedSession) Subscribe(ctx context.Context, uri string) error {
	return ss.call(ctx, "subscribe", uri)
}

func (ss *scriptedSession) Unsubscribe(ctx context.Context, uri string) error {
	return ss.call(ctx, "unsubscribe", uri)
}

func (ss *scriptedSession) WatchList(ctx context.Context, k fanout.Kind) error {
	return ss.call(ctx, "watch", k.String())
}

func (ss *scriptedSession) UnwatchList(k fanout.Kind) {
	_ = ss.call(context.Background(), "unwatch", k.String())
}

func (ss *scriptedSession) call(ctx context.Context, method, uri string) error {
	s := ss.s
	s.mu.Lock()
	s.calls = append(s.calls, method+" "+uri)
	key := fmt.Sprintf("%p %s", ss, uri)
	if s.inFlight == nil {
		s.inFlight = make(map[string]int)
	}
	if s.inFlight[key]++; s.inFlight[key] > 1 {
		s.overlaps = append(s.overlaps, uri)
	}
	answer := s.answer
	s.mu.Unlock()
	defer s.set(func(s *script) { s.inFlight[key]-- })

	var delay time.Duration
	var refusal error
	if answer != nil {
		delay, refusal = answer(method, uri)
	}
	if err := ss.pass(ctx, delay/2); err != nil {
		return err
	}
	if refusal == nil {
		s.set(func(*script) {
			if method == "subscribe" {
				ss.active[uri] = true
			} else {
				delete(ss.active, uri)
			}
		})
	}
	if err := ss.pass(ctx, delay-delay/2); err != nil {
		return err
	}
	if refusal == nil {
		s.log.Add(method + " " + uri)
	}
	return refusal
}

func (ss *scriptedSession) pass(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	gone := ss.gone
	if ss.s.stuck {
		gone = nil
	}
	select {
	case <-gone:
		return errors.New("session lost")
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
	}
	return nil
}

func (ss *scriptedSession) Offers() Offers {
	ss.s.mu.Lock()
	defer ss.s.mu.Unlock()
	return ss.s.offers
}

func (ss *scriptedSession) Done() <-chan struct{} { return ss.gone }

func refuse(uris ...string) func(string, string) (time.Duration, error) {
	return func(method, uri string) (time.Duration, error) {
		if method == "subscribe" && slices.Contains(uris, uri) {
			return 0, wire.Errorf(-32002, "no such resource")
		}
		return 0, nil
	}
}

// delay makes subscribes to uri take d.
func delay(uri string, d time.Duration) func(string, string) (time.Duration, error) {
	return func(method, u string) (time.Duration, error) {
		if method == "subscribe" && u == uri {
			return d, nil
		}
		return 0, nil
	}
}
