package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestM2L34StreamsShareOneSubscription(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = delay("a", time.Second)
		var waiting []<-chan *watchtest.Stream
		for range 50 {
			waiting = append(waiting, st.GoListen(uriTopic("a")))
		}
		var streams []*watchtest.Stream
		for _, c := range waiting {
			s := <-c
			s.WantHonored("a")
			streams = append(streams, s)
		}
		late := st.Listen(uriTopic("a"))
		late.WantHonored("a")
		st.wantCalls("subscribe a")

		for _, s := range streams {
			s.Close()
		}
		time.Sleep(time.Minute)
		st.wantCalls("subscribe a")
		late.Close()
		time.Sleep(upstream.DefaultLinger - 1)
		st.wantCalls("subscribe a")
		time.Sleep(time.Nanosecond)
		st.wantCalls("subscribe a", "unsubscribe a")
		st.wantEnded()
	})
}

func TestM2L34StreamsShareARefusal(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = func(string, string) (time.Duration, error) {
			return time.Second, wire.Errorf(-32002, "no such resource")
		}
		first := st.GoListen(uriTopic("a"))
		time.Sleep(900 * time.Millisecond)
		second := st.GoListen(uriTopic("a"))
		(<-first).WantHonored("")
		(<-second).WantHonored("")
		st.wantCalls("subscribe a")
		st.wantEnded()
	})
}

func TestM2L34SubscribeWhileUnsubscribing(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = func(method, _ string) (time.Duration, error) {
			if method == "unsubscribe" {
				return 3 * time.Second, nil
			}
			return 0, nil
		}
		st.Listen(uriTopic("a")).Close()
		time.Sleep(upstream.DefaultLinger + time.Second) // the unsubscribe is on its way
		begun := time.Now()
		s := st.Listen(uriTopic("a"))
		s.WantHonored("a")
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("Watch took %v, want the 2s that the unsubscribe still took", took)
		}
		st.wantCalls("subscribe a", "unsubscribe a", "subscribe a")
		st.wantSubscribed("a")
	})
}

// A call that ends without an answer leaves the outcome open: it is repeated
// while the topic is wanted, and undone when it is not.
func TestM2L34UnansweredCallsAreRepeated(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		var calls atomic.Int32
		st.server.answer = func(string, string) (time.Duration, error) {
			if n := calls.Add(1); n <= 2 || n == 4 {
				return 0, errors.New("status 502")
			}
			return 0, nil
		}
		s := st.Listen(uriTopic("a"))
		s.WantHonored("a")
		st.wantCalls("subscribe a", "subscribe a", "subscribe a")
		s.Close()
		time.Sleep(time.Minute)
		st.wantCalls("subscribe a", "subscribe a", "subscribe a", "unsubscribe a", "unsubscribe a")
		st.wantEnded()
	})
}

func TestM2L34AnotherStreamIsTriedAtOnce(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = func(string, string) (time.Duration, error) { return 0, errors.New("status 502") }
		first := st.GoListen(uriTopic("a"))
		time.Sleep(9*time.Second + 1)
		st.server.set(func(s *script) { s.answer = nil })
		begun := time.Now()
		st.Listen(uriTopic("a")).WantHonored("a")
		if took := time.Since(begun); took != 0 {
			t.Errorf("Watch took %v, want no wait for the next try", took)
		}
		(<-first).WantHonored("a")
	})
}

func TestM2L34UnsubscribeIsNotTriedForEver(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = func(method, _ string) (time.Duration, error) {
			if method == "unsubscribe" {
				return 0, errors.New("status 502")
			}
			return 0, nil
		}
		st.Listen(uriTopic("a")).Close()
		time.Sleep(time.Minute)
		if n := len(st.server.callsOf("unsubscribe a")); n != maxTries {
			t.Errorf("%d tries, want %d", n, maxTries)
		}
		st.wantEnded()
	})
}

// What was promised is restored whole and at once, also for a share that has used
// up its allowance; what is new waits or is left out.
func TestLimitOfSubscribesBreaksNoPromise(t *testing.T) {
	withRig(t, options{Options: &upstream.Options{Subscribes: 10}}, func(t *testing.T, st *rig) {
		topics := func(prefix string, n int) (out []fanout.Topic) {
			for i := range n {
				out = append(out, uriTopic(fmt.Sprint(prefix, i)))
			}
			return out
		}
		first := topics("a", 100)
		st.Listen(first...).WantHonored(watchtest.TopicNames(first))
		if s := st.Listen(topics("b", 100)...); len(s.Honored) < 50 || len(s.Honored) > 52 {
			t.Errorf("%d topics honored beyond the allowance, want those of 5s", len(s.Honored))
		}
		promised := len(st.server.subscribed())
		st.server.lose(nil)
		time.Sleep(time.Second)
		if n := len(st.server.subscribed()); n != promised {
			t.Errorf("%d of %d topics are subscribed again", n, promised)
		}
		if n, _ := st.Ended(fanout.Topic{}); n != 0 {
			t.Errorf("%d promises were broken", n)
		}
	})
}

// Whatever streams, server and network do in whatever order: in the end the
// server tells of exactly what is listened to.
func TestM2L34AnyInterleavingEndsInTheRightState(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			withRig(t, options{pace: pace{usual.retry, time.Hour, usual.parallel}}, func(t *testing.T, st *rig) {
				newChaos(st, seed).run()
			})
		})
	}
}

// chaos drives a rig by a seed.
type chaos struct {
	st      *rig
	uris    []string
	clients sync.WaitGroup

	mu   sync.Mutex
	rnd  *rand.Rand
	open map[*chaosStream]bool
	calm bool           // the server works
	bad  map[string]int // calls in a row that were not answered well, by URI
}

// A chaosStream is in the index from before its Watch to its close.
type chaosStream struct {
	want   []fanout.Topic
	stream *watchtest.Stream // nil until acknowledged
	ended  chan struct{}     // capacity 1: the gateway was told to end it
}

func newChaos(st *rig, seed uint64) *chaos {
	c := &chaos{st: st, rnd: rand.New(rand.NewPCG(seed, 1)), open: make(map[*chaosStream]bool), bad: make(map[string]int)}
	for i := range 6 {
		c.uris = append(c.uris, fmt.Sprint("u", i))
	}
	st.server.answer = c.answer
	st.OnEnd = c.end
	return c
}

// end tells every stream in the index for the topic that it has ended.
func (c *chaos) end(topic fanout.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.open {
		if slices.Contains(s.want, topic) {
			select {
			case s.ended <- struct{}{}:
			default:
			}
		}
	}
}

func (c *chaos) intn(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(n)
}

func (c *chaos) millis(n int) time.Duration { return time.Duration(c.intn(n)) * time.Millisecond }

// answer fails at times, but not so often in a row that a Watch gives up.
func (c *chaos) answer(method, uri string) (time.Duration, error) {
	n := c.intn(20)
	c.mu.Lock()
	calm := c.calm
	if n > 2 || c.bad[uri] == maxTries-2 {
		n, c.bad[uri] = 20, -1
	}
	c.bad[uri]++
	c.mu.Unlock()
	switch {
	case calm:
		return c.millis(50), nil
	case n == 0 && method == "subscribe":
		return c.millis(100), wire.Errorf(-32002, "not today")
	case n == 1:
		return c.millis(100), errors.New("status 502")
	case n == 2:
		return c.millis(20_000), nil
	}
	return c.millis(3000), nil
}

// client opens streams and closes most of them after a while, or when they are
// ended.
func (c *chaos) client() {
	for range 8 {
		time.Sleep(c.millis(4000))
		s := &chaosStream{ended: make(chan struct{}, 1)}
		for _, u := range c.uris {
			if c.intn(3) == 0 {
				s.want = append(s.want, uriTopic(u))
			}
		}
		c.set(s, true)
		stream := c.st.Listen(s.want...)
		if stream.Err != nil {
			c.set(s, false)
			continue
		}
		c.mu.Lock()
		s.want, s.stream = stream.Honored, stream
		c.mu.Unlock()
		if c.intn(8) == 0 && len(stream.Honored) > 0 {
			c.clients.Go(func() { <-s.ended; c.close(s) })
			continue
		}
		select {
		case <-s.ended:
		case <-time.After(c.millis(6000)):
		}
		c.close(s)
	}
}

func (c *chaos) set(s *chaosStream, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if open {
		c.open[s] = true
	} else {
		delete(c.open, s)
	}
}

func (c *chaos) close(s *chaosStream) {
	c.set(s, false)
	s.stream.Close()
}

func (c *chaos) run() {
	t := c.st.t
	for range 5 {
		c.clients.Go(c.client)
	}
	for range 6 {
		time.Sleep(c.millis(8000))
		c.st.server.lose(errors.New("away"))
		time.Sleep(c.millis(6000))
		c.st.server.set(func(s *script) { s.away = nil })
	}
	time.Sleep(5 * time.Minute) // the clients are done by then
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	time.Sleep(5 * time.Minute)

	c.st.wantSubscribed(c.expected()...)
	if len(c.st.server.overlaps) > 0 {
		t.Errorf("two calls at a time for %q", c.st.server.overlaps)
	}
	for _, u := range c.uris {
		c.end(uriTopic(u))
	}
	c.clients.Wait()
	time.Sleep(5 * time.Minute)
	if got := c.st.server.subscribed(); len(got) > 0 {
		t.Errorf("after the last stream: subscribed to %q, want nothing", got)
	}
	c.st.wantEnded()
}

// expected is what the open streams were promised.
func (c *chaos) expected() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for s := range c.open {
		for _, topic := range s.want {
			out = append(out, topic.URI)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
