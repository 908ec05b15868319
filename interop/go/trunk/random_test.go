package trunk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	randomRounds = 200
	randomURIs   = 12 // few, so that streams meet on them
	settling     = 3 * time.Minute
)

// A chaos is what a random test has done so far.
type chaos struct {
	*world
	rng     *rand.Rand
	setup   setup
	refused []string  // URIs that the server never grants
	open    []*stream // that we have not left
	all     []*stream
	done    map[string]int
}

// TestM2L34RandomRounds touches, listens, leaves, cuts and kills at random, and
// then holds what every stream was told against the server's ledger.
func TestM2L34RandomRounds(t *testing.T) {
	t.Parallel()
	for _, setup := range []setup{{}, {eventIDs: true}, {proxy: true}, {stdio: true}} {
		t.Run(setup.String(), func(t *testing.T) {
			t.Parallel() // most of the time servers rest that were killed too often
			n := rig.Seed(t)
			c := &chaos{world: newWorld(t, setup), rng: rand.New(rand.NewPCG(n, 1)), setup: setup,
				refused: []string{item(0), item(7)}, done: make(map[string]int)}
			c.server.refuseThese(c.refused...)
			c.listen()
			for range randomRounds {
				c.round()
			}
			c.settle()
			c.judge()
		})
	}
}

// round does one thing, sometimes after a while.
func (c *chaos) round() {
	c.t.Helper()
	if c.rng.IntN(3) == 0 {
		time.Sleep(rand.N(60 * time.Millisecond)) // not from rng: clocks are not repeatable either
	}
	what := "touch"
	switch n := c.rng.IntN(100); {
	case n < 30:
		what = "listen"
		c.listen()
	case n < 55 && len(c.open) > 0:
		what = "leave"
		c.leave()
	case n < 59 && !c.setup.stdio:
		what = "cut"
		how := []string{"abrupt", "clean"}[c.rng.IntN(2)]
		c.server.cut(how, time.Duration(c.rng.IntN(400))*time.Millisecond)
	case n >= 96 && c.follows():
		what = "restart"
		c.server.restart(0)
	case n >= 90 && n < 96:
		what = "change"
		c.server.change("tools")
	default:
		c.touch()
	}
	c.done[what]++
}

// follows reports whether a stream follows anything: mcpbridge starts a child
// anew only if somebody needs it.
func (c *chaos) follows() bool {
	return slices.ContainsFunc(c.open, func(s *stream) bool {
		ack, _ := s.Ack()
		return len(ack.Topics()) > 0
	})
}

func (c *chaos) randomURI() string { return item(c.rng.IntN(randomURIs)) }

func (c *chaos) touch() {
	uris := []string{c.randomURI()}
	if c.rng.IntN(2) == 0 {
		uris = append(uris, c.randomURI())
	}
	c.server.touch(1+c.rng.IntN(3), uris...)
}

// listen opens a stream, and waits for the acknowledgment only sometimes.
func (c *chaos) listen() {
	f := filter{Tools: c.rng.IntN(4) == 0}
	for range 1 + c.rng.IntN(4) {
		if uri := c.randomURI(); !slices.Contains(f.URIs, uri) {
			f.URIs = append(f.URIs, uri)
		}
	}
	s := c.world.open(id(len(c.all)), f)
	c.t.Cleanup(s.Close)
	c.all, c.open = append(c.all, s), append(c.open, s)
	if c.rng.IntN(2) == 0 {
		select {
		case <-s.Acked:
		case <-s.Done:
		case <-time.After(settling):
		}
	}
}

// leave closes a stream, sometimes after all that it is owed has come, and
// sometimes opens one like it at once: the same topics, which linger upstream.
func (c *chaos) leave() {
	at := c.rng.IntN(len(c.open))
	s := c.open[at]
	c.open = slices.Delete(c.open, at, at+1)
	if c.rng.IntN(2) == 0 {
		rig.Until(c.t, settling, "what a stream is owed before it leaves", func() string { return c.owed(s, c.server.entries()) })
	}
	s.Close()
}

// owed says what a stream should have been told by now and was not: of every
// acknowledged topic that was touched after the acknowledgment had come there
// must be a notification that is later than the last touch.
func (c *chaos) owed(s *stream, ledger []entry) string {
	if end, problems := s.Status(); end != listen.Open || !s.IsAcked() {
		return fmt.Sprintf("stream %s on %+v is %s, acknowledged: %v, problems %q", s.ID, s.Want, end, s.IsAcked(), problems)
	}
	touched := make(map[string]int64)
	for _, e := range ledger {
		switch e.What {
		case "touch":
			touched[e.URI] = e.At
		case "change":
			touched[listen.Tools] = e.At
		}
	}
	ack, ackAt := s.Ack()
	for _, topic := range ack.Topics() {
		if at := touched[topic]; at > ackAt && !s.Told(topic, at) {
			return fmt.Sprintf("stream %s was not told of %s, touched at %v, acknowledged at %v", s.ID, topic, clock(at), clock(ackAt))
		}
	}
	return ""
}

func clock(at int64) string { return time.Unix(0, at).Format("15:04:05.000000") }

// settle waits until the streams that are open have what they are owed, and the
// server has one subscription for each URI that they were granted.
func (c *chaos) settle() {
	c.t.Helper()
	rig.Until(c.t, settling, "what the streams are owed", func() string {
		ledger := c.server.entries()
		for _, s := range c.open {
			if owed := c.owed(s, ledger); owed != "" {
				return owed
			}
		}
		return ""
	})
	uris := make(map[string]bool)
	for _, s := range c.open {
		ack, _ := s.Ack()
		for _, uri := range ack.URIs {
			uris[uri] = true
		}
	}
	c.wantSubscribed(settling, uris)
}

// judge wants every stream without a fault, and acknowledged what the server
// grants: all URIs but those that it refuses. It then closes them, and nothing
// may be left.
func (c *chaos) judge() {
	c.t.Helper()
	frames := 0
	for _, s := range c.all {
		end, problems := s.Status()
		if wantEnd := slices.Contains(c.open, s); len(problems) > 0 || wantEnd != (end == listen.Open) {
			c.t.Errorf("stream %s on %+v: %s, problems %q", s.ID, s.Want, end, problems)
		}
		ack, _ := s.Ack()
		if want := c.granted(s.Want.URIs); s.IsAcked() && !slices.Equal(ack.URIs, want) {
			c.t.Errorf("stream %s on %q was acknowledged %q, want %q", s.ID, s.Want.URIs, ack.URIs, want)
		}
		frames += len(s.Frames())
	}
	c.t.Logf("%v; %d streams, of which %d stayed; %d notifications; %d ledger entries",
		c.done, len(c.all), len(c.open), frames, len(c.server.entries()))
	for _, s := range c.open {
		s.Close()
	}
	c.want(recovery, "nothing is left", map[string]float64{
		"mcpbridge_listen_streams": 0, "mcpbridge_index_topics": 0, "mcpbridge_index_pairs": 0,
	})
	c.wantSubscribed(recovery, nil)
}

func (c *chaos) granted(uris []string) (out []string) {
	for _, uri := range uris {
		if !slices.Contains(c.refused, uri) {
			out = append(out, uri)
		}
	}
	return out
}
