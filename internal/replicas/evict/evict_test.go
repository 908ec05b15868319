package evict

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A rig has replicas that reach each other without sockets.
type rig struct {
	t      *testing.T
	broker *replicastest.Broker
	by     map[string]*replica

	mu  sync.Mutex
	cut map[string]bool // replicas that nobody reaches
}

// A replica is a Cache that notes what happens to it, with its Group.
type replica struct {
	*Group
	mcp.NoMetrics
	name   string
	engine *replicastest.Engine

	mu     sync.Mutex
	log    []string
	limits int
}

func (r *replica) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *replica) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.log
	r.log = nil
	return out
}

func (r *replica) Evict(ev fanout.Event)         { r.note("evict %s %s", ev.Topic.Scope, ev.URI) }
func (r *replica) Forget(server string)          { r.note("forget %s", server) }
func (r *replica) Clear()                        { r.note("clear") }
func (r *replica) Limit(string, string)          { r.mu.Lock(); r.limits++; r.mu.Unlock() }
func (r *replica) Publish(ev fanout.Event)       { r.note("told %s", ev.URI) }
func (r *replica) Wanted(fanout.Topic) bool      { return true }
func (r *replica) End(t fanout.Topic, err error) { r.note("end") }

func newRig(t *testing.T, names ...string) *rig {
	rig := &rig{t: t, broker: replicastest.New(), by: make(map[string]*replica), cut: make(map[string]bool)}
	for _, name := range names {
		r := &replica{name: name, engine: rig.broker.Join(t, name, name)}
		r.Group = NewGroup(Options{
			Engine: r.engine, Cache: r, Metrics: r,
			URL:          func(to replicas.Replica, path string) string { return "http://" + to.Addr + path },
			RoundTripper: func(to replicas.Replica) http.RoundTripper { return &network{rig, name, to.Instance} },
			Scope:        func(server string) string { return server + "@" + name },
		})
		t.Cleanup(r.Close)
		rig.by[name] = r
	}
	time.Sleep(2 * replicas.Heartbeat) // all know of each other
	synctest.Wait()
	return rig
}

type network struct {
	rig      *rig
	from, to string
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.rig.mu.Lock()
	cut := n.rig.cut[n.to]
	n.rig.mu.Unlock()
	if cut {
		<-r.Context().Done()
		return nil, errors.New("the network is cut")
	}
	w := httptest.NewRecorder()
	n.rig.by[n.to].Serve(w, r, n.from)
	return w.Result(), nil
}

func (rig *rig) setCut(name string, cut bool) {
	rig.mu.Lock()
	defer rig.mu.Unlock()
	rig.cut[name] = cut
}

func updated(scope, uri string) fanout.Event {
	return fanout.Event{Topic: fanout.Topic{Scope: scope, Kind: fanout.ResourceUpdated, URI: uri}, URI: uri}
}

func (r *replica) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("%s: %s did %q, want %q", what, r.name, got, want)
	}
}

// All replicas evict, each by its own scopes, before the change is told.
func TestEvictThenTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b", "c")
		a := rig.by["a"]
		c := a.Open("files", a)
		defer c.Close()
		begin := time.Now()
		c.Publish(updated("files@a/1", "u:1"))
		synctest.Wait()
		a.want(t, "a change", "evict files@a/1 u:1", "told u:1")
		rig.by["b"].want(t, "a change", "evict files@b/1 u:1")
		rig.by["c"].want(t, "a change", "evict files@c/1 u:1")
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v, want no wait", took)
		}
	})
}

// The loss of a session is told in its place among the changes, and no other replica hears of it.
func TestG14LossesStayHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a := rig.by["a"]
		c := a.Open("files", a)
		defer c.Close()
		lost := fanout.Event{Topic: fanout.Topic{Scope: "files@a/1", Kind: fanout.StateLost}, URI: "lost"}
		c.Publish(updated("files@a/1", "u:1"))
		c.Publish(lost)
		synctest.Wait()
		a.want(t, "a change and a loss", "evict files@a/1 u:1", "evict files@a/1 lost", "told u:1", "told lost")
		rig.by["b"].want(t, "a change and a loss", "evict files@b/1 u:1")
		c.Publish(lost)
		synctest.Wait()
		rig.by["b"].want(t, "a loss alone")
	})
}

// A replica that can't be reached delays the first change, and no other; it is told of all
// once it is reached.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a, b := rig.by["a"], rig.by["b"]
		c := a.Open("files", a)
		defer c.Close()
		rig.setCut("b", true)
		c.Publish(updated("files/1", "u:1"))
		time.Sleep(patience - time.Millisecond)
		synctest.Wait()
		a.want(t, "before 200 ms", "evict files/1 u:1")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		a.want(t, "after 200 ms", "told u:1")
		time.Sleep(5 * time.Second)
		a.want(t, "b is away for long", "clear")
		c.Publish(updated("files/1", "u:2"))
		synctest.Wait()
		a.want(t, "it is known to be away", "evict files/1 u:2", "told u:2")
		rig.setCut("b", false)
		time.Sleep(5 * time.Second)
		got := b.take()
		slices.Sort(got)
		if want := []string{"evict files@b/1 u:1", "evict files@b/1 u:2"}; !slices.Equal(got, want) {
			t.Errorf("b did %q once it is reached, want %q", got, want)
		}
		c.Publish(updated("files/1", "u:3"))
		synctest.Wait()
		b.want(t, "it is back", "evict files@b/1 u:3")
		if a.limits != 1 {
			t.Errorf("the limit was counted %d times, want once", a.limits)
		}
	})
}

// What a replica is to be told is bounded.
func TestTooManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a, b := rig.by["a"], rig.by["b"]
		c := a.Open("files", a)
		defer c.Close()
		rig.setCut("b", true)
		for i := range 3 * maxPending {
			c.Publish(updated("files/1", fmt.Sprint("u:", i)))
		}
		time.Sleep(time.Minute)
		if done := len(a.take()); done != 6*maxPending+1 {
			t.Errorf("a did %d things, want all changes evicted and told, and what is kept forgotten", done)
		}
		rig.setCut("b", false)
		time.Sleep(5 * time.Second)
		if got := b.take(); !slices.Contains(got, "forget files") || len(got) > maxPending+1 {
			t.Errorf("b did %d things, want it to forget the server", len(got))
		}
	})
}

// A replica that is gone is not waited for, nor told.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a := rig.by["a"]
		c := a.Open("files", a)
		defer c.Close()
		rig.setCut("b", true)
		c.Publish(updated("files/1", "u:1"))
		rig.by["b"].engine.SetAway(true)
		time.Sleep(10 * time.Second)
		a.take()
		c.Publish(updated("files/1", "u:2"))
		synctest.Wait()
		a.want(t, "b is gone", "told u:2")
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.peers) != 0 {
			t.Errorf("%d replicas are to be told, want none", len(a.peers))
		}
	})
}

// Cached results are served only while the others surely know of the replica, and forgotten
// when they may not have.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a := rig.by["a"]
		c := a.Open("files", a)
		defer c.Close()
		fresh := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := a.Fresh(); got != want {
				t.Errorf("Fresh() = %v after %v more, want %v", got, after, want)
			}
		}
		fresh(time.Second, false)
		fresh(2*time.Second, true)
		a.engine.SetAway(true)
		fresh(4*time.Second, false)
		a.want(t, "the engine is away", "clear")
		a.engine.SetAway(false)
		fresh(1500*time.Millisecond, false)
		fresh(3*time.Second, true)
		a.want(t, "the engine is back")
	})
}

// A process that was stopped forgets what it has kept, though the engine was never away.
func TestStopped(t *testing.T) {
	var f freshness
	at := time.Now()
	for range 10 {
		at = at.Add(look)
		f.note(at, true, settle(0))
	}
	if fresh, _ := f.note(at, true, settle(0)); !fresh {
		t.Fatal("it is not fresh after 5 s")
	}
	fresh, lapsed := f.note(at.Add(maxGap+time.Millisecond), true, settle(0))
	if fresh || !lapsed {
		t.Errorf("after a stop: fresh %v, lapsed %v; want what is kept forgotten", fresh, lapsed)
	}
}

// A message of a later version has everything forgotten.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a")
		w := httptest.NewRecorder()
		rig.by["a"].Serve(w, httptest.NewRequest("POST", Path, http.NoBody), "b")
		if w.Code != http.StatusNoContent {
			t.Errorf("status %d, want 204", w.Code)
		}
		rig.by["a"].want(t, "an unreadable message", "clear")
	})
}

// A replica that does not reach another one, or that another one does not reach, keeps nothing
// from before a change, though the engine is there for both.
func TestPartition(t *testing.T) {
	for _, tt := range []struct {
		name, cut string
		fresh     bool // b, which has what it kept forgotten each time
	}{
		{"both ways", "both", false},
		{"the one that knows can't tell", "b", true},
		{"the other can't ask", "a", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, "a", "b")
				a, b := rig.by["a"], rig.by["b"]
				ca, cb := a.Open("files", a), b.Open("files", b)
				defer ca.Close()
				defer cb.Close()
				time.Sleep(5 * time.Second)
				if !b.Fresh() {
					t.Fatal("b is not fresh before")
				}
				for _, name := range []string{"a", "b"} {
					rig.setCut(name, tt.cut == name || tt.cut == "both")
				}
				b.take()
				ca.Publish(updated("files/1", "u:1"))
				time.Sleep(6 * time.Second)
				synctest.Wait()
				if got := b.take(); !slices.ContainsFunc(got, func(line string) bool { return line == "clear" || line == "evict files@b/1 u:1" }) {
					t.Errorf("b did %q, want what it kept forgotten", got)
				}
				if got := b.Fresh(); got != tt.fresh {
					t.Errorf("Fresh() = %v, want %v", got, tt.fresh)
				}
				rig.setCut("a", false)
				rig.setCut("b", false)
				time.Sleep(10 * time.Second)
				b.take()
				time.Sleep(2 * time.Second)
				if got := b.take(); !b.Fresh() || len(got) != 0 {
					t.Errorf("healed: fresh %v, b did %q", b.Fresh(), got)
				}
			})
		})
	}
}
