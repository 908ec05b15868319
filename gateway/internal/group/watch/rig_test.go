package watch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

const (
	groupScope = "all/1"
	patience   = 2 * time.Second
)

var (
	errAway     = errors.New("nobody there")
	errReplaced = errors.New("it was replaced")
)

// A rig is the watches of a group with members of Go calls, and who follows it.
type rig struct {
	*watchtest.Hub
	log     watchtest.Journal
	members []*fake
	ws      *Watches
}

// withRig runs a test in a bubble of its own. All must have ended at its end.
func withRig(t *testing.T, members []*fake, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, members)
		defer func() {
			r.ws.Close()
			for _, f := range members {
				if left := f.topics(); len(left) > 0 || f.followers() > 0 {
					t.Errorf("after Close %s is followed %d times for %q", f.name, f.followers(), left)
				}
			}
		}()
		test(t, r)
	})
}

func newRig(t *testing.T, members []*fake) *rig {
	r := &rig{members: members}
	aud := watchtest.NewAudience(&r.log)
	r.ws = New(Options{Name: "all", View: r.view(members...), Changes: aud, Logger: slog.New(slog.DiscardHandler), Metrics: aud})
	r.Hub = &watchtest.Hub{Audience: aud, T: t, Scope: groupScope, Watch: func(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
		return r.ws.Watch(ctx, p, want, r.routes(want))
	}}
	return r
}

// view returns a group of some of the members.
func (r *rig) view(of ...*fake) *View {
	v := &View{Patience: patience}
	for _, f := range of {
		v.Members = append(v.Members, f.name)
	}
	v.Find = func(name string) (Member, error) {
		for _, f := range r.members {
			if f.name == name && !f.isGone() {
				return f, nil
			}
		}
		return nil, errAway
	}
	v.Holders = func(_ *mcp.Profile, uri string) (names []string) {
		for _, f := range of {
			if slices.Contains(f.has, uri) {
				names = append(names, f.name)
			}
		}
		return names
	}
	return v
}

// routes has resources asked for at the members that have them, or else at all.
func (r *rig) routes(want []fanout.Topic) map[fanout.Topic]*Route {
	out := make(map[fanout.Topic]*Route)
	v := r.ws.view.Load()
	for _, t := range want {
		if t.Kind == fanout.ResourceUpdated && t.URI != "denied" {
			holders := v.Holders(nil, t.URI)
			out[t] = &Route{Members: holders, Known: len(holders) > 0}
		}
	}
	return out
}

// take returns what was told since the last look, in order.
func (r *rig) take() (out []string) {
	synctest.Wait()
	for _, line := range r.log.Take() {
		out = append(out, strings.TrimPrefix(line, "event "))
	}
	return out
}

func (r *rig) wantInOrder(want ...string) {
	r.T.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		r.T.Errorf("told %q, want %q", got, want)
	}
}

func (r *rig) wantNoneEnded() {
	r.T.Helper()
	if n, _ := r.Ended(fanout.Topic{}); n > 0 {
		r.T.Errorf("%d topics ended", n)
	}
}

// list returns the topic of a list of the group, or of the loss of sessions.
func list(k fanout.Kind) fanout.Topic { return fanout.Topic{Scope: groupScope, Kind: k} }

func resources(uris ...string) []fanout.Topic { return watchtest.URITopics(groupScope, uris...) }

var (
	toolsList     = list(fanout.ToolsListChanged)
	resourcesList = list(fanout.ResourcesListChanged)
	losses        = list(fanout.StateLost)
)

// A fake is a member. It tells of lists, and of the resources that it has.
type fake struct {
	name string
	has  []string // URIs that the group knows it to have; read-only

	mu     sync.Mutex
	legacy bool  // it has sessions, and tells when one is lost
	gone   bool  // it is not served
	err    error // of all that it is asked
	// follow answers what is to be followed.
	follow func(context.Context, fanout.Topic) (bool, error)
	taken  func(fanout.Topic) // called before the answer that it tells of a topic; nil for nothing
	paid   []mcp.Share        // for each topic that was to be followed
	subs   []*subscription
}

func newFake(name string, uris ...string) *fake {
	f := &fake{name: name, has: uris}
	f.follow = func(_ context.Context, t fanout.Topic) (bool, error) {
		return t.Kind != fanout.ResourceUpdated || slices.Contains(uris, t.URI), nil
	}
	return f
}

// newLegacy returns a member with sessions.
func newLegacy(name string, uris ...string) *fake {
	f := newFake(name, uris...)
	f.legacy = true
	return f
}

// change changes f while it is used.
func (f *fake) change(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) setErr(err error) { f.change(func(f *fake) { f.err = err }) }

func (f *fake) isGone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

// asked returns for how many topics f was asked.
func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.paid)
}

// followers returns how many subscriptions f has.
func (f *fake) followers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs)
}

// topics returns what is followed, in order.
func (f *fake) topics() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subs {
		for t := range s.topics {
			out = append(out, watchtest.TopicName(t))
		}
	}
	slices.Sort(out)
	return out
}

// wantTopics compares what a member is followed for.
func (f *fake) wantTopics(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := f.topics(); !slices.Equal(got, want) {
		t.Errorf("%s is followed for %q, want %q", f.name, got, want)
	}
}

// Profile implements [Member]: the scope has the member's name, and what follows the group's.
func (f *fake) Profile(at mcp.Profile) mcp.Profile {
	_, rest, _ := strings.Cut(at.Scope, "/")
	at.Scope = f.name + "/" + rest
	return at
}

// Subscribe implements [Member].
func (f *fake) Subscribe(p mcp.Profile, mail *fanout.Mailbox, lost func(fanout.Topic, error)) (Following, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return nil, errReplaced
	}
	s := &subscription{of: f, p: p, mail: mail, lost: lost, topics: make(map[fanout.Topic]bool)}
	f.subs = append(f.subs, s)
	return s, nil
}

// publish tells of a change of a list, or of a resource.
func (f *fake) publish(k fanout.Kind, uri string) { f.publishAs(k, uri, uri, "") }

// publishAs tells of a change as that of a URI, with _meta.
func (f *fake) publishAs(k fanout.Kind, uri, as, meta string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subs {
		if t := (fanout.Topic{Scope: s.p.Scope, Kind: k, URI: uri}); s.topics[t] {
			s.mail.Put(fanout.Event{Topic: t, URI: as, Meta: []byte(meta)})
		}
	}
}

// lose ends all subscriptions, as a reload does that replaces the member.
func (f *fake) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subs {
		s.mail.End(errReplaced)
	}
	f.subs = nil
}

// giveUp ends a topic of all subscriptions, as the back of the member does that has tried to
// reach it for long.
func (f *fake) giveUp(k fanout.Kind, uri string) {
	f.mu.Lock()
	var lost []func()
	for _, s := range f.subs {
		t := fanout.Topic{Scope: s.p.Scope, Kind: k, URI: uri}
		if !s.topics[t] {
			continue
		}
		delete(s.topics, t)
		if k != fanout.StateLost {
			s.mail.Put(fanout.Event{Topic: t, URI: uri})
		}
		lost = append(lost, func() { s.lost(t, errAway) })
	}
	f.mu.Unlock()
	for _, tell := range lost {
		tell()
	}
}

// A subscription is one to a fake, whose mutex guards topics.
type subscription struct {
	of     *fake
	p      mcp.Profile
	mail   *fanout.Mailbox
	lost   func(fanout.Topic, error)
	topics map[fanout.Topic]bool
}

// Follow implements [Following].
func (s *subscription) Follow(ctx context.Context, share mcp.Share, t fanout.Topic) (bool, error) {
	s.of.mu.Lock()
	follow := s.of.follow
	s.of.paid = append(s.of.paid, share)
	s.of.mu.Unlock()
	if takes, err := follow(ctx, t); !takes || err != nil {
		return false, err
	}
	if err := s.take(t); err != nil || !s.of.legacy && t.Kind == fanout.StateLost {
		return false, err
	}
	s.of.mu.Lock()
	taken := s.of.taken
	s.of.mu.Unlock()
	if taken != nil {
		taken(t)
	}
	return true, nil
}

// take adds a topic.
func (s *subscription) take(t fanout.Topic) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	switch {
	case s.of.err != nil:
		return s.of.err
	case !slices.Contains(s.of.subs, s):
		return errReplaced
	case t.Kind != fanout.StateLost || s.of.legacy:
		s.topics[t] = true
	}
	return nil
}

// Unfollow implements [Following].
func (s *subscription) Unfollow(t fanout.Topic) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.topics, t)
}

// Close implements [Following].
func (s *subscription) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.subs = slices.DeleteFunc(s.of.subs, func(other *subscription) bool { return other == s })
}

// takesLong makes a member take that long for what is to be followed.
func takesLong(d time.Duration) func(context.Context, fanout.Topic) (bool, error) {
	return func(ctx context.Context, _ fanout.Topic) (bool, error) {
		select {
		case <-time.After(d):
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// takesNothing is what a member says that refuses all.
func takesNothing(context.Context, fanout.Topic) (bool, error) { return false, nil }
