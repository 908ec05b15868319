package source_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// neighbors are how a replica asks others without the engine.
type neighbors struct{ from *replica }

func (n neighbors) reach(to replicas.Replica) (*replica, error) {
	r := n.from.rig
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.cuts[[2]string{n.from.name, to.Instance}]:
		return nil, errors.New("the network is cut")
	case r.gone == to.Instance:
		return nil, replicas.ErrGone
	}
	return r.by[to.Instance], nil
}

func (n neighbors) Greet(_ context.Context, to replicas.Replica) error {
	_, err := n.reach(to)
	return err
}

func (n neighbors) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	rep, err := n.reach(to)
	if err != nil {
		return err
	}
	n.from.rig.mu.Lock()
	muted := n.from.rig.mute == to.Instance
	n.from.rig.mu.Unlock()
	if muted {
		return errors.New("it takes too long")
	}
	return rep.engine.TellFor(ctx, n.from.name, record)
}

func (n neighbors) Ask(_ context.Context, to replicas.Replica, key string) (uint64, error) {
	rep, err := n.reach(to)
	if err != nil {
		return 0, err
	}
	return rep.engine.Holds(key)
}

// newTown returns three replicas of which one serves all of a principal, and which ask each other, and
// a principal for which all choose the first one.
func newTown(t *testing.T) (r *rig, ada mcp.Principal) {
	names := source.Names{Server: "files", Whole: true}
	r = newRigOf(t, func(string) source.Names { return names }, func(e *replicastest.Engine) replicas.Engine { return e })
	r.meet = true
	for _, name := range []string{"a", "b", "c"} {
		r.add(name)
	}
	time.Sleep(5 * time.Second) // from then on they know all
	ada = "ada"
	for r.by["a"].engine.View().Choose(names.OfPrincipal(ada)).Instance != "a" {
		ada += "a"
	}
	return r, ada
}

// try opens a listen stream that may be refused.
func (rep *replica) try(p mcp.Principal, uri string) (*follower, error) {
	f := &follower{t: rep.rig.t, mail: fanout.NewMailbox(fanout.MailboxOptions{})}
	profile := rep.profile(p, []byte("{}"))
	sub, err := rep.hub.Subscribe(served{rep}, &mcp.Request{Method: spec.MethodListen, Principal: p, Profile: profile}, f.mail, mcp.SubscribeOptions{Stream: true})
	if err != nil {
		return nil, err
	}
	if _, err = sub.Add(f.t.Context(), mcp.Filter{URIs: []string{uri}}); err != nil {
		sub.Close()
		return nil, err
	}
	f.sub = sub
	return f, nil
}

// wantRefused wants a stream to be refused for the moment, and nothing to be watched for it.
func (r *rig) wantRefused(what, name string, p mcp.Principal, want map[string]int) {
	r.t.Helper()
	begin := time.Now()
	if _, err := r.by[name].try(p, "u:9"); !mcp.MayTryLater(err) {
		r.t.Errorf("%s: a stream at %s: %v, want it to be refused for the moment", what, name, err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		r.t.Errorf("%s: a stream at %s was refused after %v", what, name, took)
	}
	synctest.Wait()
	if got := r.server.subscriptions(); fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("%s: subscriptions %v, want %v", what, got, want)
	}
}

// While the engine is away, a stream follows the replica that serves its principal, though nobody else
// has ever wanted that: the others are asked, as calls do.
func TestAStreamFollowsAnOwnerThatOthersDoNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ada := newTown(t)
		fc := r.by["c"].follow(ada, "u:1")
		quiet()
		r.broker.SetAway(true)
		time.Sleep(5 * time.Second)
		all := []*follower{fc, r.by["a"].follow(ada, "u:1"), r.by["b"].follow(ada, "u:1")}
		for range 90 { // an answer counts for a while
			time.Sleep(time.Second)
			r.wantSubscriptions("the engine is away", 1, "u:1")
			r.server.push("u:1")
			for _, f := range all {
				f.want("a change while the engine is away", "u:1")
			}
		}
	})
}

// What nobody serves is watched by the replica that all choose, once all have answered that they don't.
func TestAStreamOfWhatNobodyServes(t *testing.T) {
	for name, cut := range map[string][2]string{"one can't be asked": {"a", "b"}, "the one that all choose can't ask": {"a", "c"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ada := newTown(t)
				r.broker.SetAway(true)
				r.cut(cut[0], cut[1], true)
				time.Sleep(5 * time.Second)
				for _, name := range []string{"a", "b"} {
					r.wantRefused("they are cut off", name, ada, map[string]int{})
				}
				r.cut(cut[0], cut[1], false)
				r.broker.SetAway(false)
				time.Sleep(10 * time.Second)
				r.broker.SetAway(true)
				time.Sleep(5 * time.Second)
				fb, fa := r.by["b"].follow(ada, "u:1"), r.by["a"].follow(ada, "u:1")
				quiet()
				r.wantSubscriptions("the one that all choose", 1, "u:1")
				r.server.push("u:1")
				fa.want("a change", "u:1")
				fb.want("a change", "u:1")
				fa.sub.Close()
				quiet()
				if got := r.by["a"].hub.Snapshot().Peers; got != 1 {
					t.Errorf("the replica that all choose watches for %d others, want one", got)
				}
			})
		})
	}
}

// A replica that can't reach the engine has the one watch that writes its heartbeats: that can claim.
func TestAStreamAtAReplicaWithoutTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ada := newTown(t)
		r.by["a"].engine.SetAway(true)
		r.writes("b")
		time.Sleep(5 * time.Second)
		if teller, _ := r.by["a"].engine.Teller(); teller.Instance != "b" {
			t.Fatalf("%q writes the heartbeats of a, want b", teller.Instance)
		}
		f := r.by["a"].follow(ada, "u:1")
		for i := range 20 { // now one writes them, and now the other
			r.writes([]string{"b", "c"}[i%2])
			time.Sleep(3 * time.Second)
			r.wantSubscriptions("one watches", 1, "u:1")
			r.server.push("u:1")
			f.want("a change", "u:1")
		}
		name := source.Names{Server: "files", Whole: true}.OfPrincipal(ada)
		for _, who := range []string{"b", "c"} {
			if c, held := r.by[who].engine.Holder(name); held && c.Holder.Instance == who && r.by[who].hub.Snapshot().Peers == 1 {
				return
			}
		}
		t.Error("neither b nor c holds the claim and watches")
	})
}

// writes has one of b and c write heartbeats of others.
func (r *rig) writes(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute = map[string]string{"b": "c", "c": "b"}[name]
}

// The replica that a stream follows while the engine is away is gone: the others find out that nobody
// serves its principal, and the one that all choose watches. One that it refuses asks again, with pauses.
func TestAStreamWhoseOwnerIsGone(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		t.Run(fmt.Sprint(refuses), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ada := newTown(t)
				var asked atomic.Int64
				if refuses {
					r.by["a"].srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						asked.Add(1)
						http.Error(w, "not now", http.StatusServiceUnavailable)
					})
				}
				r.by["c"].follow(ada, "u:1")
				quiet()
				r.broker.SetAway(true)
				time.Sleep(5 * time.Second)
				b := r.by["b"].follow(ada, "u:1")
				r.by["c"].kill()
				r.mu.Lock()
				r.gone = "c"
				r.mu.Unlock()
				time.Sleep(2 * time.Minute)
				r.wantSubscriptions("its owner is gone", 1, "u:1")
				b.take()
				r.server.push("u:1")
				b.want("a change", "u:1")
				if got := r.by["a"].hub.Snapshot().Peers; !refuses && got != 1 || refuses && got != 0 {
					t.Errorf("a watches for %d others", got)
				}
				if n := asked.Load(); refuses && (n == 0 || n > 100) {
					t.Errorf("a was asked %d times within two minutes", n)
				}
			})
		})
	}
}

// While it is not known yet who serves a principal, a stream waits as calls do, and starts nothing.
func TestAStreamWaitsForAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ada := newTown(t)
		r.broker.SetAway(true)
		time.Sleep(5 * time.Second)
		r.broker.SetAway(false)
		r.broker.Empty()
		time.Sleep(1100 * time.Millisecond) // it is heard again, and may have forgotten who holds what
		begin := time.Now()
		f := r.by["b"].follow(ada, "u:1")
		if took := time.Since(begin); took < time.Second {
			t.Errorf("the stream was opened after %v, want it to wait for who may have served its principal", took)
		}
		if c, held := r.by["b"].engine.Holder(source.Names{Server: "files", Whole: true}.OfPrincipal(ada)); !held || c.Holder.Instance != "b" {
			t.Errorf("%+v holds the claim, want b", c)
		}
		r.wantSubscriptions("its owner", 1, "u:1")
		f.want("nothing has moved")
	})
}
