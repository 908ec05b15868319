package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A schedule is a random sequence of changes and of what happens to members, under many clients.
type schedule struct {
	*rig
	rand *rand.Rand
	// due has, for each topic of a member, the number of events at its last change: one of the
	// topic has to follow.
	due map[fanout.Topic]int
}

// Members are killed, hang, are replaced, give up topics, and leave the group, under 200 clients
// who come and go: no change is lost, of living members or of others, nothing ends, and nothing is
// left.
func TestG13NoUpdateIsLost(t *testing.T) {
	for seed := range uint64(20) {
		members := []*fake{newLegacy("a", "a:1", "a:2"), newFake("b", "b:1", "b:2"), newLegacy("c", "c:1"), newFake("d", "d:1", "d:2")}
		withRig(t, members, func(t *testing.T, r *rig) {
			s := &schedule{rig: r, rand: rand.New(rand.NewPCG(seed, 32)), due: make(map[fanout.Topic]int)}
			s.run(t)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// scope returns the scope of one of the profiles.
func (s *schedule) scope(n int) string { return fmt.Sprintf("all/%d", n) }

const profiles = 5

func (s *schedule) run(t *testing.T) {
	stay := s.all()
	for n := range profiles {
		for range 40 {
			s.join(t, n, stay)
		}
	}
	for range 150 {
		s.step(t)
	}
	for _, f := range s.members {
		f.setErr(nil)
		f.change(func(f *fake) { f.gone, f.follow = false, newFake(f.name, f.has...).follow })
	}
	time.Sleep(20 * time.Minute)
	s.take()
	told := make(map[fanout.Topic]int)
	for i, ev := range s.Events() {
		told[ev.Topic] = i + 1
	}
	for topic, at := range s.due {
		for n := range profiles {
			if topic.Scope = s.scope(n); told[topic] <= at {
				t.Errorf("the last change of %s of profile %d is not told", watchtest.TopicName(topic), n)
			}
		}
	}
	s.wantNoneEnded()
}

// all returns all topics of a profile, without a scope.
func (s *schedule) all() []fanout.Topic {
	topics := []fanout.Topic{{Kind: fanout.ToolsListChanged}, {Kind: fanout.StateLost}}
	for _, f := range s.members {
		for _, uri := range f.has {
			topics = append(topics, fanout.Topic{Kind: fanout.ResourceUpdated, URI: uri})
		}
	}
	return topics
}

// join opens a stream of a profile, which stays until release is called.
func (s *schedule) join(t *testing.T, n int, topics []fanout.Topic) (leave func()) {
	want := make([]fanout.Topic, len(topics))
	for i, topic := range topics {
		want[i] = topic
		want[i].Scope = s.scope(n)
	}
	s.Want(1, want...)
	honored, release, err := s.ws.Watch(t.Context(), mcp.Profile{Scope: s.scope(n)}, want, s.routes(want))
	if err != nil {
		t.Errorf("Watch = %v", err)
		return func() {}
	}
	if n := len(honored); n == 0 {
		t.Errorf("nothing of %s is accepted", watchtest.TopicNames(want))
	}
	return func() {
		s.Want(-1, want...)
		release()
	}
}

func (s *schedule) step(t *testing.T) {
	f := s.members[s.rand.IntN(len(s.members))]
	switch s.rand.IntN(9) {
	case 0, 1, 2:
		s.change(f, fanout.ResourceUpdated, f.has[s.rand.IntN(len(f.has))])
	case 3:
		s.change(f, fanout.ToolsListChanged, "")
	case 4: // killed; it comes back later
		f.setErr(errAway)
		f.lose()
		time.AfterFunc(s.some(time.Minute), func() { f.setErr(nil) })
	case 5: // replaced
		f.lose()
	case 6: // hangs
		normal := newFake(f.name, f.has...).follow
		f.change(func(f *fake) { f.follow = slowly(s.some(20*time.Second), normal) })
		time.AfterFunc(s.some(time.Minute), func() { f.change(func(f *fake) { f.follow = normal }) })
	case 7: // unreachable for too long
		f.setErr(errAway)
		f.giveUp(fanout.ToolsListChanged, "")
		f.giveUp(fanout.StateLost, "")
		for _, uri := range f.has {
			f.giveUp(fanout.ResourceUpdated, uri)
		}
		time.AfterFunc(s.some(time.Minute), func() { f.setErr(nil) })
	case 8:
		s.comeAndGo(t, f)
	}
	time.Sleep(s.some(5 * time.Second))
}

// comeAndGo has members or clients come and go.
func (s *schedule) comeAndGo(t *testing.T, f *fake) {
	switch s.rand.IntN(3) {
	case 0:
		var others []*fake
		for _, other := range s.members {
			if other != f {
				others = append(others, other)
			}
		}
		s.ws.Show(s.view(others...))
		time.AfterFunc(s.some(10*time.Second), func() { s.ws.Show(s.view(s.members...)) })
	case 1:
		f.change(func(f *fake) { f.gone = true })
		f.lose()
		time.AfterFunc(s.some(10*time.Second), func() { f.change(func(f *fake) { f.gone = false }); s.ws.Look() })
	default:
		leave := s.join(t, s.rand.IntN(profiles), s.all()[:1+s.rand.IntN(4)])
		time.AfterFunc(s.some(20*time.Second), leave)
	}
}

// change changes something at a member, which tells it if it can.
func (s *schedule) change(f *fake, k fanout.Kind, uri string) {
	s.due[fanout.Topic{Kind: k, URI: uri}] = len(s.Events())
	f.publish(k, uri)
}

func (s *schedule) some(most time.Duration) time.Duration {
	return time.Duration(s.rand.Int64N(int64(most)))
}

// slowly has what is to be followed take longer.
func slowly(d time.Duration, then func(context.Context, fanout.Topic) (bool, error)) func(context.Context, fanout.Topic) (bool, error) {
	wait := takesLong(d)
	return func(ctx context.Context, t fanout.Topic) (bool, error) {
		if _, err := wait(ctx, t); err != nil {
			return false, err
		}
		return then(ctx, t)
	}
}
