package member_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// modelled is how long a schedule lasts, in heartbeats of the slowest replica.
const modelled = 60

// A reign is a time in which a replica is the owner of a name: in an epoch of its claim or, without
// one, in an outage.
type reign struct {
	by            string
	epoch, outage uint64
}

// An ack is a call that a replica has acknowledged, as the owner.
type ack struct {
	reign
	at time.Duration // since the town was made
}

func (a ack) String() string {
	if a.epoch == 0 {
		return fmt.Sprintf("%s acknowledges without a claim, in its outage %d, at %v", a.by, a.outage, a.at)
	}
	return fmt.Sprintf("%s acknowledges in epoch %d at %v", a.by, a.epoch, a.at)
}

// serve acknowledges calls under a name, if the replica owns that, until ctx ends.
func (c *citizen) serve(ctx context.Context, name string) {
	nap := func(most time.Duration) bool {
		time.Sleep(c.town.span(most*time.Duration(c.town.unit/time.Second), "nap "+c.instance+name))
		return ctx.Err() == nil && c.awake(ctx, "nap "+name) == nil
	}
	for nap(200 * time.Millisecond) {
		c.find(ctx, name)
		begun, owns := c.owns(name)
		if !owns || !nap(100*time.Millisecond) {
			continue
		}
		if now, owns := c.owns(name); owns && (now == begun || begun.epoch == 0) {
			c.town.acknowledge(name, now)
		}
	}
}

// find finds out who holds a name, as forward's table.Find does.
func (c *citizen) find(ctx context.Context, name string) {
	if _, held := c.Holder(name); held {
		return
	}
	_, _ = c.Claim(ctx, name) // owns sees what has come of it
	if !c.View().Away.IsZero() {
		_ = c.Inquire(ctx, name)
	}
}

// owns returns the reign in which the replica may act as the owner: it looks as forward's table.Owns
// does.
func (c *citizen) owns(name string) (reign, bool) {
	view := c.View()
	now, held := c.Holder(name)
	switch {
	case !c.Leased():
	case held:
		return reign{c.instance, now.Epoch, 0}, now.Holder.Instance == c.instance
	case !view.Away.IsZero() && view.Choose(name).Instance == c.instance:
		outage := c.Vacant(name)
		return reign{c.instance, 0, outage}, outage > 0
	}
	return reign{}, false
}

// fault does one thing that may go wrong, and returns what ends it.
func (t *town) fault() (what string, end func()) {
	n, m := t.draw(3), t.draw(3)
	one := t.at(n)
	switch t.draw(10) {
	case 0, 1:
		one.SetAway(true)
		return one.instance + " is cut off from the engine", func() { one.SetAway(false) }
	case 2:
		t.engineAway(true)
		if t.draw(2) == 0 {
			t.open()
		}
		return "the engine is away", func() { t.engineAway(false) }
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
		return one.instance + " is killed", func() { t.rejoin(n) }
	case 8:
		return t.beginWithEngine(n)
	}
	t.setSlow(900 * time.Millisecond)
	return "replicas are slow", func() { t.setSlow(swift) }
}

// beginWithEngine has a replica begin when the engine is back, or up to a second later.
func (t *town) beginWithEngine(n int) (what string, end func()) {
	t.engineAway(true)
	time.Sleep(time.Duration(t.draw(6000)) * t.unit / 1000)
	t.open()
	time.Sleep(time.Duration(t.draw(4000)) * t.unit / 1000)
	one := t.at(n)
	one.die()
	return "the engine is away, and the next replica starts when it is back, instead of " + one.instance, func() {
		t.engineAway(false)
		time.Sleep(time.Duration(t.draw(int64(1+t.draw(1000)))) * time.Millisecond)
		t.rejoin(n)
	}
}

// rejoin has a replica begin in the place of one that was killed, unless another one has. If the engine
// is there, nothing else happens until one of the others has heard that, for two heartbeats at most: else
// the new one were at the engine's side of a partition of all others, about which nothing can be done.
func (t *town) rejoin(n int) {
	if t.at(n).dead.Err() == nil {
		return
	}
	t.join(n)
	unheard := func() bool {
		for i := range t.all {
			if c := t.at(i); i != n && c.dead.Err() == nil && c.View().Away.IsZero() {
				return false
			}
		}
		return !t.away
	}
	for by := time.Now().Add(2 * t.unit); unheard() && time.Now().Before(by); {
		time.Sleep(t.unit / 20)
	}
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

// bound is how long a name may have no owner that acknowledges: a round that fails still and the next
// one, until others take it or one that was forgotten acts on it again, and the courtesy towards whom all
// choose.
func (t *town) bound() time.Duration { return replicas.Pace(t.unit).Patience() + 3*t.unit }

// judge returns what is wrong with the calls that were acknowledged.
func (t *town) judge(healed time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, name := range names {
		if wrong := judge(t.acks[name], n > 0); wrong != "" {
			return name + ": " + wrong
		}
		if n <= t.opened && !slices.ContainsFunc(t.acks[name], func(a ack) bool { return a.at > healed && a.at < healed+t.bound() }) {
			return fmt.Sprintf("%s: no owner within %v", name, t.bound())
		}
	}
	return ""
}

// judge says which calls under one name two owners have acknowledged: the reigns of one are over once
// another one has followed. Epochs rise, unless the claims of the dead are swept, since nobody else wants
// the name.
func judge(acks []ack, swept bool) string {
	over := make(map[reign]bool)
	var now []reign // of who has acknowledged last
	var last ack
	var highest uint64
	for _, a := range acks {
		if a.by != last.by {
			for _, r := range now {
				over[r] = true
			}
			now = nil
		}
		again := a.by != last.by && a.epoch == highest
		if over[a.reign] || a.epoch > 0 && !swept && (a.epoch < highest || again) {
			return fmt.Sprintf("%v, after %v", a, last)
		}
		last, highest, now = a, max(highest, a.epoch), append(now, a.reign)
	}
	return ""
}

func fromEnv(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// At most one owner acknowledges, whatever is slow, stopped, killed or cut off, and begins whenever, with clocks of
// different speeds and heartbeats of different paces; and each name finds an owner again, also one that
// only its owner, or nobody, has wanted before the engine was away. MODEL is
// the number of schedules, SEED the first one. One alone is told in full. A seed tells the same story
// each time, but for one of many hundred, in which two things of one replica begin at the same moment.
func TestModelOfOwners(t *testing.T) {
	count, first := fromEnv("MODEL", 100), fromEnv("SEED", 1)
	acks, unclaimed, digest := 0, 0, fnv.New64a()
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
			for _, name := range names {
				for _, a := range tn.acks[name] {
					if acks++; a.epoch == 0 {
						unclaimed++
					}
				}
				fmt.Fprint(digest, tn.acks[name])
			}
		})
		if t.Failed() {
			return
		}
	}
	if acks < 200*int(count) || count >= 100 && unclaimed == 0 {
		t.Errorf("%d calls were acknowledged in %d schedules, %d without a claim; want more: nothing was tried", acks, count, unclaimed)
	}
	t.Logf("%d calls in %d schedules, %d of them without a claim; what was acknowledged when: %x", acks, count, unclaimed, digest.Sum(nil))
}
