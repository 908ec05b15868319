package member_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

const (
	// bound is how long, beyond the TTL, a name may have no owner that acknowledges: the
	// margin, a round, and the courtesy towards whom all choose.
	bound = replicas.ClaimMargin + 2*replicas.Heartbeat
	// modelled is how long a schedule lasts.
	modelled = 60 * time.Second
)

// A town is three replicas of the model, and what is between them.
type town struct {
	broker *replicastest.Broker
	all    []*citizen
	begin  time.Time

	mu   sync.Mutex // guards the fields below
	cuts map[[2]int]bool
	slow time.Duration // of messages between replicas, at most
	acks []ack
	rnd  *rand.Rand
}

// An ack is a call that a replica has acknowledged, as the owner of an epoch.
type ack struct {
	by    int
	epoch uint64
	at    time.Duration // since the town was made
}

func (a ack) String() string {
	return fmt.Sprintf("%c acknowledges in epoch %d at %v", 'a'+rune(a.by), a.epoch, a.at)
}

// A citizen is a replica of the model. It implements [replicas.Neighbors] for its engine.
type citizen struct {
	*replicastest.Engine
	town   *town
	n      int
	frozen chan struct{} // closed when it goes on; nil if it is not stopped; town.mu guards it
}

func (t *town) draw(n int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rnd.Int64N(n)
}

// awake waits until the replica is not stopped.
func (c *citizen) awake(ctx context.Context) error {
	for {
		c.town.mu.Lock()
		frozen := c.frozen
		c.town.mu.Unlock()
		if frozen == nil {
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
func (c *citizen) reach(ctx context.Context, to replicas.Replica) (*citizen, error) {
	if err := c.awake(context.Background()); err != nil {
		return nil, err
	}
	other := c.town.all[int(to.Instance[0]-'a')]
	c.town.mu.Lock()
	cut, slow := c.town.cuts[[2]int{c.n, other.n}], c.town.slow
	c.town.mu.Unlock()
	if cut {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if slow > 0 {
		time.Sleep(time.Duration(c.town.draw(int64(slow))))
	}
	return other, other.awake(ctx)
}

func (c *citizen) Greet(ctx context.Context, to replicas.Replica) error {
	_, err := c.reach(ctx, to)
	return errors.Join(err, ctx.Err())
}

func (c *citizen) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	other, err := c.reach(ctx, to)
	if err == nil {
		err = other.TellFor(ctx, c.View().Self.Instance, record)
	}
	_, back := other.answer(ctx, c)
	return errors.Join(err, back)
}

// answer is the way back of a message's response.
func (c *citizen) answer(ctx context.Context, to *citizen) (*citizen, error) {
	if c == nil {
		return nil, errors.New("nobody there")
	}
	return c.reach(ctx, to.View().Self)
}

// serve acknowledges calls as the owner of a name, until ctx ends.
func (c *citizen) serve(ctx context.Context, name string) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(c.town.draw(int64(200 * time.Millisecond))))
		if c.awake(ctx) != nil {
			return
		}
		begun, err := c.Claim(ctx, name)
		if err != nil {
			begun, _ = c.Holder(name)
		}
		if !c.owns(name, begun) {
			continue
		}
		time.Sleep(time.Duration(c.town.draw(int64(100 * time.Millisecond)))) // the call
		if c.awake(ctx) != nil {
			return
		}
		if c.owns(name, begun) {
			c.town.mu.Lock()
			c.town.acks = append(c.town.acks, ack{c.n, begun.Epoch, time.Since(c.town.begin)})
			c.town.mu.Unlock()
		}
	}
}

// owns reports whether the replica may act as the owner, as it did when begun was found.
func (c *citizen) owns(name string, begun replicas.Claim) bool {
	now, held := c.Holder(name)
	return held && now == begun && now.Holder.Instance == c.View().Self.Instance && c.Leased()
}

// fault does one thing that may go wrong, and returns what ends it.
func (t *town) fault() (what string, end func()) {
	one, two := t.all[t.draw(3)], t.all[t.draw(3)]
	switch t.draw(7) {
	case 0:
		one.SetAway(true)
		return one.name() + " is cut off from the engine", func() { one.SetAway(false) }
	case 1:
		t.broker.SetAway(true)
		return "the engine is away", func() { t.broker.SetAway(false) }
	case 2:
		one.stop(true)
		return one.name() + " is stopped", func() { one.stop(false) }
	case 3, 4:
		ways := [][2]int{{one.n, two.n}}
		if t.draw(2) == 0 {
			ways = append(ways, [2]int{two.n, one.n})
		}
		t.cut(ways, true)
		return fmt.Sprint("cuts ", ways), func() { t.cut(ways, false) }
	case 5:
		t.broker.SetDelay(func() time.Duration { return time.Duration(t.draw(int64(600 * time.Millisecond))) })
		return "the engine is slow", func() { t.broker.SetDelay(nil) }
	}
	t.mu.Lock()
	t.slow = 900 * time.Millisecond
	t.mu.Unlock()
	return "replicas are slow", func() {
		t.mu.Lock()
		t.slow = 0
		t.mu.Unlock()
	}
}

func (t *town) cut(ways [][2]int, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, way := range ways {
		t.cuts[way] = on
	}
}

func (c *citizen) name() string { return c.View().Self.Instance }

// drifting is a clock that runs faster or slower.
func drifting(rate float64) func() time.Time {
	begin := time.Now()
	return func() time.Time {
		return begin.Add(time.Duration(float64(time.Since(begin)) * rate))
	}
}

// newTown returns three replicas whose clocks differ by up to a twentieth.
func newTown(t *testing.T, seed uint64) *town {
	tn := &town{broker: replicastest.New(), cuts: make(map[[2]int]bool), begin: time.Now(), rnd: rand.New(rand.NewPCG(seed, 0))}
	for n := range 3 {
		rate := 1 + (tn.rnd.Float64()-0.5)/10
		tn.all = append(tn.all, &citizen{Engine: tn.broker.Engine(t, member.Options{Now: drifting(rate)}), town: tn, n: n})
	}
	for n, c := range tn.all {
		c.Meet(c)
		self := replicas.Replica{Instance: string(rune('a'+n)) + "aaa", Addr: fmt.Sprintf("10.0.0.%d:2528", n+1), Version: "test", Revision: replicas.Revision}
		if err := c.Engine.Join(t.Context(), self); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1100 * time.Millisecond)
	return tn
}

// play has faults come and go, one or two at a time, and returns which.
func (t *town) play() (story []string) {
	begin := t.begin
	var ends []func()
	for time.Since(begin) < modelled {
		time.Sleep(time.Duration(t.draw(int64(4 * time.Second))))
		if len(ends) == 2 || len(ends) > 0 && t.draw(2) == 0 {
			ends[0]()
			ends = ends[1:]
			story = append(story, fmt.Sprint(time.Since(begin), ": it ends"))
			continue
		}
		what, end := t.fault()
		ends = append(ends, end)
		story = append(story, fmt.Sprint(time.Since(begin), ": ", what))
	}
	for _, end := range ends {
		end()
	}
	return append(story, fmt.Sprint(time.Since(begin), ": all is well"))
}

// judge returns what is wrong with the calls that were acknowledged.
func (t *town) judge(healed time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last ack
	found := false
	for _, a := range t.acks {
		switch {
		case a.epoch < last.epoch, a.epoch == last.epoch && a.by != last.by:
			return fmt.Sprintf("%v, after %v", a, last)
		}
		last = a
		found = found || a.at > healed && a.at < healed+replicas.MemberTTL+bound
	}
	if !found {
		return fmt.Sprintf("no owner within %v; the last one: %v", replicas.MemberTTL+bound, last)
	}
	return ""
}

// At most one owner acknowledges, whatever is slow, stopped or cut off, and with clocks of
// different speeds; and each name finds an owner again. MODEL is the number of schedules, SEED
// the first one.
func TestModelOfOwners(t *testing.T) {
	count, first := 100, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("MODEL")); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		first = n
	}
	acks := 0
	for seed := first; seed < first+uint64(count); seed++ {
		synctest.Test(t, func(t *testing.T) {
			tn := newTown(t, seed)
			ctx, end := context.WithCancel(t.Context())
			var serving sync.WaitGroup
			for _, c := range tn.all {
				serving.Go(func() { c.serve(ctx, "name") })
			}
			story := tn.play()
			healed := time.Since(tn.begin)
			time.Sleep(replicas.MemberTTL + bound)
			end()
			serving.Wait()
			if wrong := tn.judge(healed); wrong != "" {
				for _, line := range story {
					t.Log(line)
				}
				t.Errorf("seed %d: %s", seed, wrong)
			}
			acks += len(tn.acks)
		})
		if t.Failed() {
			return
		}
	}
	if acks < 100*count {
		t.Errorf("%d calls were acknowledged in %d schedules, want more: nothing was tried", acks, count)
	}
	t.Logf("%d calls in %d schedules", acks, count)
}
