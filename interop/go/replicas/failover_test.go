package replicas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// Engines that go on without one of their servers.
const (
	sentinels = "sentinel" // a Redis and one that follows it, and three Sentinels
	natsNodes = "nats3"    // three nodes of NATS
)

// TestEngineFailsOver kills the server that an engine is written through: no error in running
// sessions, each change reaches all, and claims are whole again once another server leads.
func TestEngineFailsOver(t *testing.T) {
	beside(t)
	over(t, []string{sentinels, natsNodes}, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t, setup{engine: engine, warn: true})
		c := newCrowd(t, w, w.legacy, 60, 20)
		busy := w.keepBusy(t)
		own := w.total(ownClaims)
		stop := c.change(t, 20*time.Millisecond)
		begun := time.Now()
		w.engine.(interface{ failOver() }).failOver()
		named := time.Now()
		rig.Until(t, recovery, "claims are whole", func() string { return w.whole(own) })
		t.Logf("another server led %v after the kill, and all was in order %v later", named.Sub(begun).Round(time.Millisecond), time.Since(named).Round(time.Millisecond))
		touches := stop()
		if longest := c.settle(t, recovery, touches); longest > soon {
			t.Errorf("a change took %v, want %v at most", longest, soon)
		}
		t.Logf("%d calls of sessions, %d changes", busy(), len(touches))
		c.wantOpen(t)
		w.killOwner(t, c) // another replica claims, which the server that leads has to know
		c.steady(t, 2)
	})
}

// whole says what is missing until all replicas know each other and the engine, and hold as
// many claims as before.
func (w *world) whole(own float64) string {
	for _, r := range w.replicas {
		if g := r.gauges(); g[membersGauge] != float64(len(w.replicas)) || g["mcpbridge_replica_engine_up"] != 1 {
			return fmt.Sprintf("%s has %v members, engine %v", r.name, g[membersGauge], g["mcpbridge_replica_engine_up"])
		}
	}
	if n := w.total(ownClaims); n < own {
		return fmt.Sprintf("%v claims, and there were %v", n, own)
	}
	return ""
}

// A sentinelEngine is a master of Redis, one that follows it, and three Sentinels.
type sentinelEngine struct {
	*redisEngine // the master at the beginning
	follower     *redisEngine
	watch        [3]*process.Process
	at           [3]string // where the Sentinels listen
}

func newSentinels(t *testing.T) *sentinelEngine {
	e := &sentinelEngine{redisEngine: newRedisEngine(t)}
	e.follower = newRedisEngine(t, "--replicaof", fmt.Sprint("127.0.0.1 ", port(e.redisEngine.at)), "--repl-diskless-sync-delay", "0")
	for i := range e.at {
		e.at[i] = rig.FreeAddr(t)
	}
	return e
}

func (e *sentinelEngine) url(string) string {
	return "redis+sentinel://default:" + strings.ReplaceAll(enginePassword, " ", "%20") + "@" + strings.Join(e.at[:], ",") + "/0?master_name=engine"
}

func (e *sentinelEngine) start() {
	e.t.Helper()
	e.redisEngine.start()
	e.follower.start()
	for i, at := range e.at {
		file := filepath.Join(e.t.TempDir(), "sentinel.conf")
		conf := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor engine 127.0.0.1 %d 2\nsentinel auth-pass engine %q\n"+
			"sentinel down-after-milliseconds engine 1000\nsentinel failover-timeout engine 5000\n", port(at), port(e.redisEngine.at), enginePassword)
		err := os.WriteFile(file, []byte(conf), 0o600)
		if err == nil {
			e.watch[i], err = process.Start("redis-sentinel", nil, "redis-server", file, "--sentinel")
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	rig.Until(e.t, 2*time.Minute, "the Sentinels know each other and who follows", func() string {
		for _, at := range e.at {
			lines, err := (&redisEngine{at: at}).ask("SENTINEL", "MASTER", "engine")
			text := strings.Join(lines, " ") + " "
			if err != nil || !strings.Contains(text, "num-slaves 1 ") || !strings.Contains(text, "num-other-sentinels 2 ") {
				return fmt.Sprint(text, err)
			}
		}
		return ""
	})
}

// failOver kills the master, and returns when another one is named.
func (e *sentinelEngine) failOver() {
	e.redisEngine.p.Kill()
	e.redisEngine.p = nil
	rig.Until(e.t, 2*time.Minute, "the one that followed is the master", func() string {
		lines, err := e.follower.ask("ROLE")
		if err != nil || lines[0] != "master" {
			return fmt.Sprint(lines, err)
		}
		return ""
	})
}

func (e *sentinelEngine) stop() {
	for _, p := range e.watch {
		if p != nil {
			p.Kill()
		}
	}
	e.follower.stop()
	e.redisEngine.stop()
}

// failOver stops the node that leads the bucket of claims, and returns when another one does.
func (e *nodesEngine) failOver() {
	e.t.Helper()
	former := e.leader()
	for _, n := range e.nodes {
		if n.Name != former {
			continue
		}
		if err := n.p.Stop(time.Minute); err != nil {
			e.t.Error(err)
		}
		n.p = nil
	}
	until(e.t, "another node leads", func() bool { now := e.leader(); return now != "" && now != former })
}

// leader returns the name of the node that leads the bucket of claims; empty if there is none.
func (e *nodesEngine) leader() string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := natsgo.Connect(e.url(""))
	if err != nil {
		return ""
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		e.t.Fatal(err)
	}
	s, err := js.Stream(ctx, "KV_mcpbridge_claims")
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}
