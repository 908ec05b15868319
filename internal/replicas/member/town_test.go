package member_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// swift is how long messages take at most while nothing is slow. They take some time, so that no
// two arrive at once: what is first would be chance.
const swift = time.Millisecond

// A town is three replicas of the model, and what is between them. What happens in it follows from
// its seed alone.
type town struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand // of the schedule
	loud   bool
	broker *replicastest.Broker
	away   bool // the broker is, for all
	begin  time.Time
	unit   time.Duration // between heartbeats of the slowest replica
	paces  [3]replicas.Pace
	homes  [len(names)]int // the places of those that want a name first; beyond the last one: nobody
	live   context.Context // ends with the schedule
	finish context.CancelFunc

	running sync.WaitGroup // what serves, and messages

	mu     sync.Mutex // guards the fields below
	all    [3]*citizen
	born   int
	cuts   map[[2]int]bool
	slow   time.Duration    // of messages between replicas, at most
	acks   map[string][]ack // by name
	opened int              // the last of names that all want
}

// names are those of the model. All want the first one from the beginning. Of each other one only the
// replica at a place does, or nobody, until all do in an absence of the engine.
var names = [3]string{"name", "lonely", "another"}

// A citizen is a replica of the model. It implements [replicas.Neighbors] for its engine.
type citizen struct {
	*replicastest.Engine
	town     *town
	n        int // its place
	instance string
	dead     context.Context
	die      context.CancelFunc
	frozen   chan struct{} // closed when it goes on; nil if it is not stopped; town.mu guards it
}

// newTown returns three replicas whose clocks differ by up to a twentieth, and of which half of the
// towns have some with slower heartbeats.
func newTown(t *testing.T, seed uint64, loud bool) *town {
	tn := &town{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), loud: loud, broker: replicastest.New(), begin: time.Now(), unit: replicas.Heartbeat, cuts: make(map[[2]int]bool), slow: swift, acks: make(map[string][]ack)}
	for i := range names[1:] {
		tn.homes[i+1] = tn.draw(6)
	}
	tn.live, tn.finish = context.WithCancel(t.Context())
	for n := range tn.paces {
		if seed%2 == 0 {
			tn.paces[n] = replicas.Pace([]time.Duration{1, 1, 2, 3, 10}[tn.draw(5)] * time.Second)
		}
		tn.unit = max(tn.unit, tn.paces[n].Every())
	}
	tn.engineSlow(swift)
	for n := range tn.all {
		tn.join(n)
	}
	time.Sleep(tn.unit + tn.unit/10)
	return tn
}

// end ends all that is running. The engines end with the test.
func (t *town) end() {
	t.finish()
	t.running.Wait()
}

func (t *town) draw(n int64) int { return int(t.rnd.Int64N(n)) }

// span is a time of less than most, by what happens when: two things that begin at once, and end
// at once, would have chance decide what comes first.
func (t *town) span(most time.Duration, what string) time.Duration {
	by := fnv.New64a()
	fmt.Fprint(by, time.Since(t.begin), what)
	return time.Duration(rand.New(rand.NewPCG(t.seed, by.Sum64())).Int64N(int64(most)))
}

func (t *town) at(n int) *citizen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[n]
}

// join has a replica begin in a place.
func (t *town) join(n int) {
	t.mu.Lock()
	t.born++
	c := &citizen{town: t, n: n, instance: fmt.Sprintf("%c%03d", 'a'+n, t.born)}
	t.mu.Unlock()
	opts := member.Options{Now: drifting(1 + (t.rnd.Float64()-0.5)/10)}
	if t.loud {
		opts.Logger = slog.New(slog.NewTextHandler(teller{t, c.instance}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c.dead, c.die = context.WithCancel(t.live)
	c.Engine = t.broker.Engine(t.t, opts)
	c.Meet(c)
	t.mu.Lock()
	t.all[n] = c
	opened := t.opened
	t.mu.Unlock()
	context.AfterFunc(c.dead, func() {
		c.stop(false)
		_ = c.Close(context.Background()) // without a word
	})
	self := replicas.Replica{Instance: c.instance, Addr: fmt.Sprintf("10.0.0.%d:2528", n+1), Version: "test", Revision: replicas.Revision, Pace: t.paces[n]}
	if err := c.Engine.Join(t.live, self); err != nil {
		t.t.Error(err)
	}
	for i, name := range names {
		if i <= opened || n == t.homes[i] {
			t.running.Go(func() { c.serve(c.dead, name) })
		}
	}
}

// open has calls under another name come to all replicas.
func (t *town) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened == len(names)-1 {
		return
	}
	t.opened++
	name := names[t.opened]
	for n, c := range t.all {
		if n != t.homes[t.opened] {
			t.running.Go(func() { c.serve(c.dead, name) })
		}
	}
}

// teller has the log of a replica in that of the test.
type teller struct {
	t        *town
	instance string
}

func (l teller) Write(line []byte) (int, error) {
	l.t.t.Logf("%v %s %s", time.Since(l.t.begin), l.instance, line)
	return len(line), nil
}

func (t *town) acknowledge(name string, r reign) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acks[name] = append(t.acks[name], ack{r, time.Since(t.begin)})
}

func (t *town) cut(ways [][2]int, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, way := range ways {
		t.cuts[way] = on
	}
}

func (t *town) setSlow(most time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slow = most
}

func (t *town) engineAway(on bool) {
	t.away = on
	t.broker.SetAway(on)
}

func (t *town) engineSlow(most time.Duration) {
	t.broker.SetDelay(func(engine int, what string, answer bool) time.Duration {
		return t.span(most, fmt.Sprint(engine, what, answer))
	})
}

// drifting is a clock that runs faster or slower.
func drifting(rate float64) func() time.Time {
	begin := time.Now()
	return func() time.Time {
		return begin.Add(time.Duration(float64(time.Since(begin)) * rate))
	}
}

// awake waits until the replica is not stopped. What has waited for that goes on one after the other.
func (c *citizen) awake(ctx context.Context, what string) error {
	for waited := false; ; waited = true {
		c.town.mu.Lock()
		frozen := c.frozen
		c.town.mu.Unlock()
		if frozen == nil {
			if waited {
				time.Sleep(c.town.span(swift, c.instance+what))
			}
			return nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *citizen) stop(on bool) {
	c.SetFrozen(on)
	c.town.mu.Lock()
	defer c.town.mu.Unlock()
	switch {
	case on && c.frozen == nil:
		c.frozen = make(chan struct{})
	case !on && c.frozen != nil:
		close(c.frozen)
		c.frozen = nil
	}
}

// reach is a message to another replica: it takes its time, and does not arrive over a cut.
func (c *citizen) reach(to replicas.Replica, what string) (*citizen, error) {
	t := c.town
	if err := c.awake(c.dead, to.Instance+what); err != nil {
		return nil, err
	}
	t.mu.Lock()
	cut, slow := t.cuts[[2]int{c.n, int(to.Instance[0] - 'a')}], t.slow
	t.mu.Unlock()
	if cut {
		<-t.live.Done()
		return nil, errors.New("cut off")
	}
	time.Sleep(t.span(slow, c.instance+to.Instance+what))
	other := t.at(int(to.Instance[0] - 'a'))
	if err := other.awake(t.live, c.instance+what); err != nil {
		return nil, err
	}
	switch {
	case other.dead.Err() != nil:
		return nil, errors.New("nobody is there")
	case other.instance != to.Instance:
		return nil, replicas.ErrGone
	}
	return other, nil
}

// ask has another replica do something, and returns what that says.
func (c *citizen) ask(ctx context.Context, to replicas.Replica, what string, f func(*citizen) error) error {
	answer := make(chan error, 1)
	c.town.running.Go(func() { // ends with the schedule
		other, err := c.reach(to, what)
		if err != nil {
			answer <- err
			return
		}
		err = f(other)
		if _, back := other.reach(c.View().Self, "answer "+what); back == nil {
			answer <- err
		}
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *citizen) Greet(ctx context.Context, to replicas.Replica) error {
	return c.ask(ctx, to, "greeting", func(*citizen) error { return nil })
}

func (c *citizen) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	return c.ask(ctx, to, "heartbeat", func(other *citizen) error { return other.TellFor(c.town.live, c.instance, record) })
}

func (c *citizen) Ask(ctx context.Context, to replicas.Replica, key string) (epoch uint64, err error) {
	said := make(chan uint64, 1)
	err = c.ask(ctx, to, "question "+key, func(other *citizen) error {
		epoch, err := other.Holds(key)
		said <- epoch
		return err
	})
	if err != nil {
		return 0, err
	}
	return <-said, nil
}
