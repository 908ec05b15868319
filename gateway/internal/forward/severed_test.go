package forward

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A line is how replicas of a test reach each other without the engine.
type line struct {
	self  *replicastest.Engine
	all   map[string]*replicastest.Engine
	apart *atomic.Value // the instance that reaches nobody, and nobody reaches
}

func (l line) cut(to replicas.Replica) error {
	if apart := l.apart.Load(); apart == to.Instance || apart == l.self.View().Self.Instance {
		return errors.New("nobody answers")
	}
	return nil
}

func (l line) Greet(_ context.Context, to replicas.Replica) error { return l.cut(to) }

func (l line) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	if err := l.cut(to); err != nil {
		return err
	}
	return l.all[to.Instance].TellFor(ctx, l.self.View().Self.Instance, record)
}

func (l line) Ask(_ context.Context, to replicas.Replica, key string) (uint64, error) {
	if err := l.cut(to); err != nil {
		return 0, err
	}
	return l.all[to.Instance].Holds(key)
}

// street is a room whose replicas reach each other, too, and a name that nobody has claimed, with the
// replica that all choose for it first.
func street(t *testing.T) (b *replicastest.Broker, all [3]place, apart *atomic.Value, name string) {
	t.Helper()
	b, apart = replicastest.New(), new(atomic.Value)
	apart.Store("")
	known := make(map[string]*replicastest.Engine)
	for i, instance := range []string{"aaaa", "bbbb", "cccc"} {
		e := b.Unjoined(t)
		known[instance] = e
		e.Meet(line{e, known, apart})
		if err := e.Member.Join(t.Context(), replicas.Replica{Instance: instance, Addr: "10.0.0.1:2528", Revision: replicas.Revision}); err != nil {
			t.Fatal(err)
		}
		table, err := newTable(tableOptions{Engine: e, Claims: e})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Close)
		all[i] = place{table, e}
	}
	pass(4 * time.Second) // from then on they know all
	for name = "profile"; all[0].e.View().Choose(name).Instance != "aaaa"; name += "s" {
	}
	return b, all, apart, name
}

// ask has requests under a name come to all replicas, as a balancer does.
func ask(t *testing.T, name string, all [3]place) {
	t.Helper()
	for _, p := range all {
		go p.Find(t.Context(), name, time.Hour)
	}
	synctest.Wait()
}

// owners are those that serve a name at this moment.
func owners(name string, all [3]place) (who []string) {
	for _, p := range all {
		if _, err := p.Owns(name); err == nil {
			who = append(who, p.e.View().Self.Instance)
		}
	}
	return who
}

// While no replica hears the engine, the one that all choose serves what nobody holds.
func TestWhatNobodyHoldsIsServedWithoutTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all, _, name := street(t)
		if who := owners(name, all); len(who) > 0 {
			t.Errorf("%q serve a name without a claim while the engine is there", who)
		}
		b.SetAway(true)
		pass(5 * time.Second)
		if who := owners(name, all); len(who) > 0 {
			t.Errorf("%q serve a name before the others were asked for it", who)
		}
		for range 60 {
			ask(t, name, all)
			pass(time.Second)
			if who := owners(name, all); !slices.Equal(who, []string{"aaaa"}) {
				t.Fatalf("%q serve a name that nobody holds while the engine is away, want the one that all choose", who)
			}
		}
	})
}

// At most one replica serves a name that nobody holds, whoever hears the engine, and who is reached.
func TestWhatNobodyHoldsHasOneOwner(t *testing.T) {
	t.Run("the engine is away for the chosen one alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, all, apart, name := street(t)
			apart.Store("aaaa")
			all[0].e.SetAway(true)
			chosen, _ := watch(t, name, all, 1900*time.Millisecond)
			go all[1].Find(t.Context(), name, time.Minute)
			again, last := watch(t, name, all, 8*time.Second)
			if chosen || again || last != "bbbb" {
				t.Errorf("%q serves the name in the end, and the chosen one did: %v; want the one that has claimed it alone", last, chosen || again)
			}
		})
	})
	for phase := range 8 {
		t.Run("it is back for others "+strconv.Itoa(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, all, apart, name := street(t)
				b.SetAway(true)
				pass(4 * time.Second)
				go all[0].Find(t.Context(), name, time.Minute)
				chosen, _ := watch(t, name, all, 2*time.Second+time.Duration(phase)*replicas.Heartbeat/8)
				apart.Store("aaaa")
				all[0].e.SetAway(true)
				b.SetAway(false)
				go all[1].Find(t.Context(), name, time.Minute)
				_, last := watch(t, name, all, 8*time.Second)
				if !chosen || last != "bbbb" {
					t.Errorf("%q serves the name in the end, and the chosen one did before: %v; want the one that has claimed it, and true", last, chosen)
				}
			})
		})
	}
}

// watch looks who serves a name for some time: whether the one that all choose did, and who does last.
func watch(t *testing.T, name string, all [3]place, d time.Duration) (chosen bool, last string) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pass(10 * time.Millisecond) {
		switch who := owners(name, all); len(who) {
		case 0:
		case 1:
			last = who[0]
			chosen = chosen || last == "aaaa"
		default:
			t.Fatalf("%q serve the name", who)
		}
	}
	return chosen, last
}

// A name that only its owner has ever wanted is that one's while the engine is away, also where it is asked
// for first; if that one can't be asked, nobody else serves it.
func TestAnOwnerThatOthersDoNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all, apart, name := street(t)
		all[2].wantFind(t, name, "cccc")
		b.SetAway(true)
		pass(5 * time.Second)
		for _, p := range all {
			p.wantFind(t, name, "cccc")
		}
		if _, err := all[0].Owns(name); err != errElsewhere {
			t.Errorf("Owns = %v of the one that all choose, want %v", err, errElsewhere)
		}
		if who := owners(name, all); !slices.Equal(who, []string{"cccc"}) {
			t.Errorf("%q serve the name, want its owner", who)
		}
		apart.Store("cccc")
		other := name
		for all[0].e.View().Choose(other).Instance != "aaaa" || other == name {
			other += "s"
		}
		all[0].wantFind(t, other, "aaaa")
		if _, err := all[0].Owns(other); err != errUnasked {
			t.Errorf("Owns = %v of a name for which one can't be asked, want %v", err, errUnasked)
		}
	})
}
