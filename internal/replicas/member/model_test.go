package member_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// modelled is how long a schedule lasts, in heartbeats of the slowest replica.
const modelled = 60

// An ack is a call that a replica has acknowledged, as the owner of an epoch.
type ack struct {
	by    string
	epoch uint64
	at    time.Duration // since the town was made
}

func (a ack) String() string {
	return fmt.Sprintf("%s acknowledges in epoch %d at %v", a.by, a.epoch, a.at)
}

// serve acknowledges calls as the owner of a name, until ctx ends.
func (c *citizen) serve(ctx context.Context, name string) {
	nap := func(most time.Duration) bool {
		time.Sleep(c.town.span(most*time.Duration(c.town.unit/time.Second), "nap "+c.instance))
		return ctx.Err() == nil && c.awake(ctx, "nap") == nil
	}
	for nap(200 * time.Millisecond) {
		begun, err := c.Claim(ctx, name)
		if err != nil {
			begun, _ = c.Holder(name)
		}
		if c.owns(name, begun) && nap(100*time.Millisecond) && c.owns(name, begun) {
			c.town.acknowledge(c.instance, begun.Epoch)
		}
	}
}

// owns reports whether the replica may act as the owner, as it did when begun was found: it looks
// as placement.Table.Owns does.
func (c *citizen) owns(name string, begun replicas.Claim) bool {
	if !c.Leased() {
		return false
	}
	now, held := c.Holder(name)
	return held && now == begun && now.Holder.Instance == c.instance
}

// fault does one thing that may go wrong, and returns what ends it.
func (t *town) fault() (what string, end func()) {
	n, m := t.draw(3), t.draw(3)
	one := t.at(n)
	switch t.draw(9) {
	case 0, 1:
		one.SetAway(true)
		return one.instance + " is cut off from the engine", func() { one.SetAway(false) }
	case 2:
		t.broker.SetAway(true)
		return "the engine is away", func() { t.broker.SetAway(false) }
	case 3:
		one.stop(true)
		return one.instance + " is stopped", func() { one.stop(false) }
	case 4, 5:
		ways := [][2]int{{n, m}}
		if t.draw(2) == 0 {
			ways = append(ways, [2]int{m, n})
		}
		t.cut(ways, true)
		return fmt.Sprint("cuts ", ways), func() { t.cut(ways, false) }
	case 6:
		most := []time.Duration{600 * time.Millisecond, 2 * time.Second}[t.draw(2)]
		t.engineSlow(most)
		return fmt.Sprint("the engine takes up to ", most), func() { t.engineSlow(swift) }
	case 7:
		one.die()
		return one.instance + " is killed", func() { t.join(n) }
	}
	t.setSlow(900 * time.Millisecond)
	return "replicas are slow", func() { t.setSlow(swift) }
}

// play has faults come and go, one or two at a time, and returns which.
func (t *town) play() (story []string) {
	var ends []func()
	tell := func(what ...any) {
		story = append(story, fmt.Sprint(time.Since(t.begin), ": ", fmt.Sprint(what...)))
	}
	for time.Since(t.begin) < modelled*t.unit {
		time.Sleep(time.Duration(t.draw(4000)) * t.unit / 1000)
		switch {
		case len(ends) == 2, len(ends) > 0 && t.draw(2) == 0:
			ends[0]()
			ends = ends[1:]
			tell("it ends")
		case len(ends) == 0 && t.draw(12) == 0:
			tell(t.empty())
		default:
			what, end := t.fault()
			ends = append(ends, end)
			tell(what)
		}
	}
	for _, end := range ends {
		end()
	}
	tell("all is well")
	return story
}

// empty has the engine forget everything, while all else is well.
func (t *town) empty() string {
	time.Sleep(t.bound())
	away := time.Duration(t.draw(2)*t.draw(3000)) * t.unit / 1000
	t.broker.SetAway(away > 0)
	time.Sleep(away)
	t.broker.Empty()
	t.broker.SetAway(false)
	time.Sleep(t.bound())
	return fmt.Sprint("the engine was away for ", away, ", and has forgotten everything")
}

// bound is how long a name may have no owner that acknowledges: until others take it, a round, and
// the courtesy towards whom all choose.
func (t *town) bound() time.Duration { return replicas.Pace(t.unit).Patience() + 2*t.unit }

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
		found = found || a.at > healed && a.at < healed+t.bound()
	}
	if !found {
		return fmt.Sprintf("no owner within %v; the last one: %v", t.bound(), last)
	}
	return ""
}

func fromEnv(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// At most one owner acknowledges, whatever is slow, stopped, killed or cut off, with clocks of
// different speeds and heartbeats of different paces; and each name finds an owner again. MODEL is
// the number of schedules, SEED the first one. One alone is told in full. A seed tells the same story
// each time, but for one of many hundred, in which two things of one replica begin at the same moment.
func TestModelOfOwners(t *testing.T) {
	count, first := fromEnv("MODEL", 100), fromEnv("SEED", 1)
	acks, digest := 0, fnv.New64a()
	for seed := first; seed < first+count; seed++ {
		synctest.Test(t, func(t *testing.T) {
			tn := newTown(t, seed, count == 1)
			story := tn.play()
			healed := time.Since(tn.begin)
			time.Sleep(tn.bound())
			tn.end()
			if wrong := tn.judge(healed); wrong != "" {
				for _, line := range story {
					t.Log(line)
				}
				t.Errorf("seed %d: %s", seed, wrong)
			}
			acks += len(tn.acks)
			fmt.Fprint(digest, tn.acks)
		})
		if t.Failed() {
			return
		}
	}
	if acks < 100*int(count) {
		t.Errorf("%d calls were acknowledged in %d schedules, want more: nothing was tried", acks, count)
	}
	t.Logf("%d calls in %d schedules; what was acknowledged when: %x", acks, count, digest.Sum(nil))
}
