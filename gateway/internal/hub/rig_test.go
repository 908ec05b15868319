package hub

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// A source stands for a server and its back: it notes what is watched, "watch" and the
// topics, and "release" and them.
type source struct {
	log  watchtest.Journal
	name string

	mu      sync.Mutex
	refused []string               // URIs that the server does not accept
	err     error                  // of Watch
	reason  error                  // why the server is used no more
	hold    chan struct{}          // Watch waits until it is closed; nil for not
	by      map[string]mcp.Profile // of the last Watch of each URI
}

// asked returns for which profile a resource was watched last.
func (s *source) asked(uri string) mcp.Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[uri]
}

func (s *source) Name() string  { return s.name }
func (s *source) Scope() string { return s.name }

func (s *source) Reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

func (s *source) ForClient(err error) error {
	if err == nil {
		return nil
	}
	return errors.New("the server did not answer")
}

func (s *source) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	s.log.Add("watch " + watchtest.TopicNames(want))
	s.mu.Lock()
	if s.by == nil {
		s.by = make(map[string]mcp.Profile)
	}
	for _, t := range want {
		s.by[t.URI] = p
	}
	refused, err, hold := s.refused, s.err, s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	honored := slices.DeleteFunc(slices.Clone(want), func(t fanout.Topic) bool { return slices.Contains(refused, t.URI) })
	return honored, func() { s.log.Add("release " + watchtest.TopicNames(want)) }, nil
}

// wantLog compares what the server was asked since the last look, in any order.
func (s *source) wantLog(t *testing.T, want ...string) {
	t.Helper()
	if got := s.log.Take(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the server was asked %q, want %q", got, want)
	}
}

// A rig is a hub with a server.
type rig struct {
	*Hub
	source  *source
	logs    *bridgetest.Log
	metrics *backtest.Metrics

	mu      sync.Mutex
	expire  func(reason error) // ends the last stream's credential
	forgets int
}

func newRig(t *testing.T, c *cache.Cache) *rig {
	r := &rig{source: &source{name: "peer"}, logs: &bridgetest.Log{}, metrics: &backtest.Metrics{}}
	r.Hub = New(Options{
		Cache: c, Logger: slog.New(slog.NewTextHandler(r.logs, nil)), Metrics: r.metrics,
		Until: func(_ *mcp.Identity, end func(error)) func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.expire = end
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.forgets++
			}
		},
	})
	r.Bound(3, 2)
	t.Cleanup(r.Close)
	return r
}

// A guest is a subscriber without a front.
type guest struct {
	*Subscription
	mail *fanout.Mailbox
}

// requestOf returns what a client of somebody subscribes with.
func requestOf(who string) *mcp.Request {
	return &mcp.Request{
		Era: spec.Modern, Principal: mcp.Principal(who), ClientInfo: []byte(`{"name":"c","version":"1"}`),
		Profile: mcp.Profile{Scope: "peer/" + who, Share: mcp.Share{Principal: mcp.Principal(who)}},
	}
}

func (r *rig) join(t *testing.T, o mcp.SubscribeOptions) guest {
	t.Helper()
	return r.joinAs(t, "ada", o)
}

func (r *rig) joinAs(t *testing.T, who string, o mcp.SubscribeOptions) guest {
	t.Helper()
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	s, err := r.Subscribe(r.source, requestOf(who), mail, o)
	if err != nil {
		t.Fatalf("Subscribe() of %s = %v", who, err)
	}
	t.Cleanup(s.Close)
	return guest{s, mail}
}

// refused wants a subscriber refused, with words.
func (r *rig) refused(t *testing.T, who string, o mcp.SubscribeOptions, words ...string) {
	t.Helper()
	_, err := r.Subscribe(r.source, requestOf(who), fanout.NewMailbox(fanout.MailboxOptions{}), o)
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("Subscribe() of %s = %v, want %q", who, err, w)
		}
	}
}

// add wants some of what is subscribed to be honored, by the names of topics.
func (g guest) add(t *testing.T, f mcp.Filter, want string) {
	t.Helper()
	honored, err := g.Add(t.Context(), f)
	if got := watchtest.TopicNames(honored.Topics("")); err != nil || got != want {
		t.Errorf("Add(%v) = %q, %v, want %q", f, got, err, want)
	}
}

// wantHeard compares what came, as the names of topics.
func (g guest) wantHeard(t *testing.T, what string, want ...string) {
	t.Helper()
	var got []string
	for ev, ok := g.mail.Next(); ok; ev, ok = g.mail.Next() {
		got = append(got, watchtest.TopicName(ev.Topic))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q came, want %q", what, got, want)
	}
}

// wantEnd wants the mailbox ended for a reason; nil for not ended.
func (g guest) wantEnd(t *testing.T, want error) {
	t.Helper()
	if reason, ended := g.Ended(); reason != want || ended != (want != nil) {
		t.Errorf("Ended() = %v, %v, want %v", reason, ended, want)
	}
}

func uris(of ...string) mcp.Filter { return mcp.Filter{URIs: of} }

// topic returns the topic of a URI for somebody.
func topic(who, uri string) fanout.Topic { return uris(uri).Topics("peer/" + who)[0] }

// push has the server report that a resource of somebody has changed.
func (r *rig) push(who, uri string) {
	r.Publish(fanout.Event{Topic: topic(who, uri), URI: uri})
}
