package hub

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An evictionHook is called when a result leaves the cache.
type evictionHook struct {
	mcp.NoMetrics
	f func(why string)
}

func (h evictionHook) CacheEvicted(_, why string) { h.f(why) }

// A tools handler answers tools/list with what is public.
type tools struct{}

func (tools) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	res := mcp.NewResult([]byte(`{"tools":[]}`), nil)
	res.Cache = mcp.CacheHint{TTL: 60_000, Public: true}
	return res, nil
}

// newKeepingRig returns a rig with a cache that has the tools of ada, and calls evicted when
// they leave it.
func newKeepingRig(t *testing.T, evicted func(why string)) *rig {
	c, err := cache.New(cache.Options{Entries: 10, Bytes: 1 << 20, Memory: budget.New(1 << 30), Metrics: evictionHook{f: evicted}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, c)
	req := requestOf("ada")
	req.Method, req.Params = spec.MethodToolsList, []byte(`{}`)
	res, err := r.Cache().Handler("peer", []string{spec.MethodToolsList}, tools{}).Serve(t.Context(), req, nil)
	if err != nil || r.Snapshot().Cache.Entries != 1 {
		t.Fatalf("Serve() = %v, cache %+v, want the result kept", err, r.Snapshot().Cache)
	}
	res.Release()
	return r
}

// Nothing stands in a mailbox before the results that the change concerns are
// gone.
func TestM2L08EvictedBeforeTheMailbox(t *testing.T) {
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	evicted := 0
	r := newKeepingRig(t, func(string) {
		if evicted++; mail.Len() != 0 {
			t.Error("the change was told before its results were evicted")
		}
	})
	topic := fanout.Topic{Scope: "peer/ada", Kind: fanout.ToolsListChanged}
	r.Index().Subscribe(topic, mail)
	defer r.Index().Prune(mail)
	r.Publish(fanout.Event{Topic: topic})
	if evicted != 1 || mail.Len() != 1 {
		t.Errorf("%d results evicted, %d events told, want 1 and 1", evicted, mail.Len())
	}
}

// What is kept of a server is gone before its subscribers hear of its end.
func TestEndsEvictBeforeTheyAreTold(t *testing.T) {
	for name, end := range map[string]func(*rig, error){
		"another program": func(r *rig, why error) { r.EndServer(r.source, why) },
		"no more used":    func(r *rig, why error) { r.EndSubscriptions(r.source, why) },
	} {
		t.Run(name, func(t *testing.T) {
			var g guest
			evicted := 0
			r := newKeepingRig(t, func(string) {
				if _, ended := g.Ended(); ended {
					t.Error("the end was told before its results were evicted")
				}
				evicted++
			})
			g = r.join(t, mcp.SubscribeOptions{Stream: true})
			g.add(t, mcp.Filter{Tools: true}, "toolsListChanged")
			why := errors.New("replaced")
			end(r, why)
			if g.wantEnd(t, why); evicted != 1 {
				t.Errorf("%d results evicted, want 1", evicted)
			}
		})
	}
}

// Open streams are bounded, those of one share and all: what is too much is refused with the
// key that raises the limit, counted and logged. Sessions are not streams.
func TestStreamsAreBounded(t *testing.T) {
	stream := mcp.SubscribeOptions{Stream: true}
	r := newRig(t, nil)
	first := r.joinAs(t, "ada", stream)
	r.joinAs(t, "ada", stream)
	r.refused(t, "ada", stream, "2 listen streams are open", "limits.streams_each")
	r.joinAs(t, "bob", stream)
	r.refused(t, "eve", stream, "3 listen streams are open", "limits.streams")
	if each, all := r.metrics.Count("limit streams_each"), r.metrics.Count("limit streams"); each != 1 || all != 1 {
		t.Errorf("counted %d and %d refusals, want one each", each, all)
	}
	if n := strings.Count(r.logs.String(), "too many are open"); n != 1 { // anybody can cause them
		t.Errorf("the log has %d lines, want 1: %s", n, r.logs)
	}
	r.joinAs(t, "ada", mcp.SubscribeOptions{})
	first.Close()
	r.joinAs(t, "eve", stream)
	if s := r.Snapshot(); s.Streams != 3 || s.Members != 1 {
		t.Errorf("snapshot = %+v, want 3 streams and a session", s)
	}
	r.Bound(4, 1)
	r.refused(t, "eve", stream, "1 listen streams are open")
	r.joinAs(t, "ann", stream)
}

// Two clients that hold all streams keep nobody out: the oldest one of who has the most ends, in
// order, and its place is given once.
func TestHardeningBiggestHolderOfStreamsYields(t *testing.T) {
	stream := mcp.SubscribeOptions{Stream: true}
	r := newRig(t, nil)
	r.Bound(6, 4)
	session := r.joinAs(t, "ada", mcp.SubscribeOptions{})
	var ada []guest
	for range 4 {
		ada = append(ada, r.joinAs(t, "ada", stream))
	}
	r.joinAs(t, "eve", stream)
	r.joinAs(t, "eve", stream)
	bob := r.joinAs(t, "bob", stream)
	ada[0].wantEnd(t, errYielded)
	for _, g := range append(ada[1:], session, bob) {
		g.wantEnd(t, nil)
	}
	if s := r.Snapshot(); s.Streams != 6 || s.Members != 1 {
		t.Errorf("snapshot = %+v, want 6 streams and a session", s)
	}
	r.refused(t, "bob", stream, "limits.streams") // has one
	r.joinAs(t, "cyd", stream)
	ada[1].wantEnd(t, errYielded)
	r.refused(t, "dan", stream, "limits.streams") // nobody has more than two
	if n := r.metrics.Count("limit streams"); n != 4 {
		t.Errorf("the limit was counted %d times, want 4", n)
	}
	if n := strings.Count(r.logs.String(), "listen stream ended: "); n != 1 {
		t.Errorf("the log has %d lines of ends, want one: %s", n, r.logs)
	}
	ada[0].Close()
	ada[1].Close()
	r.refused(t, "dan", stream, "limits.streams")
	ada[2].Close()
	r.joinAs(t, "dan", stream)
	if s := r.Snapshot(); s.Streams != 6 {
		t.Errorf("snapshot = %+v, want 6 streams", s)
	}
}

// A server that is used no more has no new subscribers.
func TestSubscribeToWhatIsGone(t *testing.T) {
	r := newRig(t, nil)
	r.source.reason = errors.New("the server was removed")
	r.refused(t, "ada", mcp.SubscribeOptions{}, "the server was removed", "try again")
	r.refused(t, "ada", mcp.SubscribeOptions{Stream: true}, "the server was removed", "listen again")
	if s := r.Snapshot(); s.Streams+s.Members != 0 {
		t.Errorf("snapshot = %+v, want nothing", s)
	}
}

// Other replicas hear what clients hear, but for what a replica has reported; their streams
// are bounded by themselves.
func TestPeers(t *testing.T) {
	r := newRig(t, nil)
	client := r.joinAs(t, "ada", mcp.SubscribeOptions{Stream: true})
	client.add(t, uris("a:1"), "a:1")
	replica := r.joinAs(t, "ada", mcp.SubscribeOptions{Stream: true, Peer: true})
	replica.add(t, uris("a:1", "a:2"), "a:1 a:2")
	local := r.Local()
	for _, tt := range []struct {
		uri                    string
		wanted, locally, peers bool
	}{{"a:1", true, true, true}, {"a:2", true, false, true}, {"a:3", false, false, false}} {
		topic := topic("ada", tt.uri)
		if all, here, there := r.Wanted(topic), local.Wanted(topic), r.WantedByPeers(topic); all != tt.wanted || here != tt.locally || there != tt.peers {
			t.Errorf("%s is wanted %v, locally %v, by replicas %v", tt.uri, all, here, there)
		}
	}
	r.push("ada", "a:1")
	r.push("ada", "a:2")
	client.wantHeard(t, "of the server", "a:1")
	replica.wantHeard(t, "of the server", "a:1", "a:2")
	local.Publish(fanout.Event{Topic: topic("ada", "a:1"), URI: "a:1"})
	local.Publish(fanout.Event{}) // of a later version
	client.wantHeard(t, "of a replica", "a:1")
	replica.wantHeard(t, "of a replica")

	why := errors.New("refused")
	local.End(topic("ada", "a:1"), why)
	client.wantEnd(t, why)
	replica.wantEnd(t, nil)
	r.End(topic("ada", "a:2"), why)
	replica.wantEnd(t, why)
	if s := r.Snapshot(); s.Streams != 1 || s.Peers != 1 || s.Members != 0 {
		t.Errorf("snapshot = %+v, want a stream of a client and one of a replica", s)
	}

	r.peers.open = maxPeers
	r.refused(t, "ada", mcp.SubscribeOptions{Stream: true, Peer: true}, "of replicas are open")
	if n := r.metrics.Count("limit peer_streams"); n != 1 {
		t.Errorf("%d refusals were counted, want 1", n)
	}
	r.peers.open = 1
	replica.Close()
	if s := r.Snapshot(); s.Peers != 0 {
		t.Errorf("snapshot = %+v, want no stream of a replica", s)
	}
}

// Whoever looks sees each change with the number of those who hear of it, until the look ends.
func TestWatch(t *testing.T) {
	r := newRig(t, nil)
	r.joinAs(t, "ada", mcp.SubscribeOptions{}).add(t, uris("a:1"), "a:1")
	r.joinAs(t, "ada", mcp.SubscribeOptions{Stream: true}).add(t, uris("a:1"), "a:1")
	var seen []int
	stop := r.Watch(func(_ fanout.Event, followers int) { seen = append(seen, followers) })
	r.push("ada", "a:1")
	r.push("bob", "a:1")
	r.Publish(fanout.Event{Topic: fanout.Topic{Scope: "peer/ada", Kind: fanout.StateLost}, Meta: []byte(`{"data":"a log message is no change"}`)})
	stop()
	r.push("ada", "a:1")
	if len(seen) != 2 || seen[0] != 2 || seen[1] != 0 {
		t.Errorf("the changes had %v followers, want 2 and 0", seen)
	}
	older := r.Watch(func(fanout.Event, int) { t.Error("one look was told, though another one has begun") })
	newer := r.Watch(func(fanout.Event, int) { seen = nil })
	older() // ends nobody else's
	if r.push("ada", "a:1"); seen != nil {
		t.Error("the look was not told")
	}
	newer()
}

// A panic of whoever looks stops neither the back that reports a change nor the next change,
// and what is no change is not delivered.
func TestPublishSurvives(t *testing.T) {
	r := newRig(t, nil)
	g := r.join(t, mcp.SubscribeOptions{})
	g.add(t, uris("a:1"), "a:1")
	told := 0
	defer r.Watch(func(fanout.Event, int) { told++; panic("boom") })()
	r.push("ada", "a:1")
	r.push("ada", "a:1")
	if n := strings.Count(r.logs.String(), "panic=boom"); told != 2 || n != 2 {
		t.Errorf("told %d times, %d panics logged, want 2 of each", told, n)
	}
	g.wantHeard(t, "after the panic", "a:1")
	r.Publish(fanout.Event{Topic: fanout.Topic{Scope: "peer/ada", URI: "a:1"}})
	if told != 2 || !strings.Contains(r.logs.String(), "its kind is invalid") {
		t.Errorf("told %d times after an invalid event: %s", told, r.logs)
	}
}

// What a hub knows of subscribers is told of mailboxes, and of some of the streams.
func TestFollowers(t *testing.T) {
	r := newRig(t, nil)
	session := r.joinAs(t, "ada", mcp.SubscribeOptions{})
	stream := r.joinAs(t, "bob", mcp.SubscribeOptions{Stream: true})
	r.joinAs(t, "ann", mcp.SubscribeOptions{Stream: true})
	r.joinAs(t, "ann", mcp.SubscribeOptions{Stream: true, Peer: true})
	gone := r.joinAs(t, "eve", mcp.SubscribeOptions{})
	gone.Close()
	of := make([]Follower, 3)
	if all := r.Followers([]*fanout.Mailbox{session.mail, gone.mail, stream.mail}, of); all != 4 {
		t.Errorf("there are %d subscribers, want 4", all)
	}
	if of[0].Principal != "ada" || of[0].Name.Value() != "c/1" || of[0].Era != spec.Modern || of[2].Principal != "bob" || of[0].Number == of[2].Number || of[1] != (Follower{}) {
		t.Errorf("the followers are %+v, want ada's, none and bob's", of)
	}
	for most, want := range map[int]int{0: 0, 1: 1, 5: 2} {
		some, all := r.SomeStreams(most)
		if len(some) != want || all != 2 {
			t.Errorf("SomeStreams(%d) = %+v, %d, want %d of 2", most, some, all, want)
		}
		for _, s := range some {
			if s.Server != "peer" || s.By.Principal != "bob" && s.By.Principal != "ann" {
				t.Errorf("SomeStreams(%d) has %+v", most, s)
			}
		}
	}
}

// After the end of all, nobody hears of anything.
func TestCloseTwice(t *testing.T) {
	r := newRig(t, nil)
	g := r.join(t, mcp.SubscribeOptions{})
	g.add(t, uris("a:1"), "a:1")
	r.Close()
	r.Close()
	r.push("ada", "a:1")
	if g.wantHeard(t, "after the end"); !r.Snapshot().Closed {
		t.Error("the hub is not closed")
	}
}
