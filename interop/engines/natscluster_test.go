package engines

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
)

func TestNATSCluster(t *testing.T) {
	t.Parallel()
	replicastest.Suite(t, nil, func(t *testing.T) replicastest.World {
		w := newNATSCluster(t)
		w.Start(false)
		return w
	})
}

// natsCluster is three nats-servers with JetStream.
type natsCluster struct {
	t             *testing.T
	ports, routes [3]int
	dir           string
	s             [3]*server.Server // nil while one is stopped
}

func newNATSCluster(t *testing.T) *natsCluster {
	w := &natsCluster{t: t, dir: t.TempDir()}
	for i := range w.ports {
		w.ports[i], w.routes[i] = freePort(t), freePort(t)
	}
	t.Cleanup(w.Stop)
	return w
}

func (w *natsCluster) Start(empty bool) {
	w.t.Helper()
	if empty {
		clear(w.t, w.dir)
	}
	for i := range w.s {
		w.start(i)
	}
	eventually(w.t, patience, "the cluster has a leader, and all have heard of it", w.ready)
}

func (w *natsCluster) ready() bool {
	leaders := 0
	for _, s := range w.s {
		if s == nil {
			continue
		}
		if !s.JetStreamIsCurrent() {
			return false
		}
		if s.JetStreamIsLeader() {
			leaders++
		}
	}
	return leaders == 1
}

// healthy reports whether each server has all buckets, as whoever restarts one after another
// waits for (/healthz).
func (w *natsCluster) healthy() bool {
	for _, s := range w.s {
		for _, bucket := range []string{"members", "claims", "records"} {
			if s == nil || !s.JetStreamIsStreamCurrent("$G", "KV_test_"+bucket) {
				return false
			}
		}
	}
	return w.ready()
}

// start starts one server.
func (w *natsCluster) start(i int) {
	w.t.Helper()
	var routes []*url.URL
	for _, port := range w.routes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: w.ports[i], Username: "replica", Password: "open sesame",
		JetStream: true, StoreDir: filepath.Join(w.dir, fmt.Sprint(i)), NoSigs: true, NoLog: true,
		Cluster: server.ClusterOpts{Name: "engine", Host: "127.0.0.1", Port: w.routes[i], NoAdvertise: true}, Routes: routes,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(60 * time.Second) {
		w.t.Fatal("nats-server is not ready")
	}
	w.s[i] = s
}

// stop ends one server, without a word to the others.
func (w *natsCluster) stop(i int) {
	if w.s[i] != nil {
		w.s[i].Shutdown()
		w.s[i].WaitForShutdown()
		w.s[i] = nil
	}
}

func (w *natsCluster) Stop() {
	for i := range w.s {
		w.stop(i)
	}
}

func (w *natsCluster) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	var proxies []proxy
	var hosts []string
	for _, port := range w.ports {
		p := newProxy(t, port)
		proxies, hosts = append(proxies, p), append(hosts, "replica:open%20sesame@"+p.addr)
	}
	stall := func(on bool) {
		for _, p := range proxies {
			p.Stall(on)
		}
	}
	return natsEngine(t, natskv.Options{URL: parse(t, "nats://"+strings.Join(hosts, ","))}), stall
}

func (w *natsCluster) group() *group {
	return newGroup(w.t, func() replicas.Engine {
		e, _ := w.Engine(w.t)
		return e
	})
}

// leader is the server that leads a bucket.
func (w *natsCluster) leader(bucket string) int {
	for i, s := range w.s {
		if s != nil && s.JetStreamIsStreamLeader("$G", "KV_test_"+bucket) {
			return i
		}
	}
	return -1
}

// Whoever leads a bucket is stopped, one bucket after another: two are enough.
func TestNATSLeaderIsStopped(t *testing.T) {
	t.Parallel()
	w := newNATSCluster(t)
	w.Start(false)
	g := w.group()
	names := g.names()
	eventually(t, patience, "three healthy servers", w.healthy)
	for _, bucket := range []string{"members", "claims", "records"} {
		eventually(t, patience, "a leader", func() bool { return w.leader(bucket) >= 0 })
		i := w.leader(bucket)
		w.stop(i)
		t.Logf("all was in order %v after the leader of %s was stopped", g.recover(60*time.Second, anywhere(names)), bucket)
		w.start(i)
		eventually(t, patience, "three healthy servers", w.healthy)
		g.recover(60*time.Second, anywhere(names))
	}
}

// The buckets are in memory: with all servers, they are empty.
func TestNATSClusterIsRestarted(t *testing.T) {
	t.Parallel()
	w := newNATSCluster(t)
	w.Start(false)
	g := w.group()
	names := g.names()
	w.Stop()
	eventually(t, patience, "noticing", func() bool { return !g.e[0].View().Away.IsZero() })
	w.Start(false)
	t.Logf("all was in order %v after the servers were there again", g.recover(60*time.Second, anywhere(names)))
}

// While two of three servers are lost nothing can be written; what was known stands.
func TestNATSWithoutQuorum(t *testing.T) {
	t.Parallel()
	w := newNATSCluster(t)
	w.Start(false)
	g := w.group()
	names := g.names()
	w.stop(0)
	w.stop(1)
	eventually(t, patience, "noticing", func() bool { return !g.e[2].View().Away.IsZero() })
	if n := len(g.e[2].View().Members); n != 3 {
		t.Errorf("%d members are known without a quorum, want 3", n)
	}
	w.start(0)
	time.Sleep(5 * time.Second)
	w.start(1)
	t.Logf("all was in order %v after all servers were there again", g.recover(60*time.Second, anywhere(names)))
}

// A bucket that was made while a cluster had one server is kept by three, once it has them;
// one that somebody else made stays as it is.
func TestNATSBucketsAreSpread(t *testing.T) {
	t.Parallel()
	w := newNATSCluster(t)
	w.Start(false)
	nc, err := nats.Connect(fmt.Sprint("nats://127.0.0.1:", w.ports[0]), nats.UserInfo("replica", "open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]string{"members": "replicas of mcpbridge: members", "claims": "replicas of mcpbridge: claims", "records": "the platform team"} {
		conf := jetstream.KeyValueConfig{Bucket: "test_" + name, Description: by, Storage: jetstream.MemoryStorage, Replicas: 1, MaxValueSize: 1 << 20}
		if _, err := js.CreateKeyValue(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
	}
	s, err := natskv.Open(natskv.Options{URL: parse(t, fmt.Sprint("nats://replica:open%20sesame@127.0.0.1:", w.ports[1])), Prefix: "test", Name: t.Name(), Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	eventually(t, patience, "the claims are read", func() bool { return s.Claims(t.Context(), func(string, member.Entry) {}) == nil })
	for name, want := range map[string]int{"members": 3, "claims": 3, "records": 1} {
		kv, err := js.KeyValue(t.Context(), "test_"+name)
		if err != nil {
			t.Fatal(err)
		}
		var status jetstream.KeyValueStatus
		eventually(t, patience, "the state of a bucket", func() bool {
			status, err = kv.Status(t.Context())
			return err == nil
		})
		if got := status.Config().Replicas; got != want {
			t.Errorf("%d servers keep the bucket %s, want %d", got, name, want)
		}
	}
}

// A record that was put is there for all at once, also if the server that is asked is behind those that
// have confirmed it.
func TestNATSServerIsBehind(t *testing.T) {
	t.Parallel()
	w := newNATSCluster(t)
	w.Start(false)
	g := w.group()
	// there has a replica do something, again while the engine has not answered it in time.
	there := func(i int, do func(replicas.Engine) error) error {
		err := do(g.e[i])
		for end := time.Now().Add(patience); errors.Is(err, replicas.ErrAway) && time.Now().Before(end); err = do(g.e[i]) {
		}
		return err
	}
	record := make([]byte, replicas.MaxRecord)
	for n := range 100 {
		key := fmt.Sprint("session ", n)
		if err := there(0, func(e replicas.Engine) error { return e.Put(t.Context(), key, record, time.Minute) }); err != nil {
			t.Fatal(err)
		}
		for i := range g.e {
			err := there(i, func(e replicas.Engine) error {
				_, err := e.Get(t.Context(), key)
				return err
			})
			if err != nil {
				t.Fatalf("%s at replica %d: %v", key, i, err)
			}
		}
	}
}

// Without a majority nobody says that a record is not there: a server that is left may be behind. One that
// leads the bucket is not behind, and says so until it gives up: after ten seconds.
func TestNATSServerIsLeft(t *testing.T) {
	t.Parallel()
	w := newNATSCluster(t)
	w.Start(false)
	e := w.group().e
	if _, err := e[0].Get(t.Context(), "never"); !errors.Is(err, replicas.ErrNotFound) {
		t.Fatalf("Get = %v, want that there is none", err)
	}
	w.stop(1)
	w.stop(2)
	eventually(t, patience, "nobody leads", func() bool { return w.leader("records") < 0 })
	for i, one := range e {
		if _, err := one.Get(t.Context(), "never"); err == nil || errors.Is(err, replicas.ErrNotFound) {
			t.Errorf("replica %d: Get = %v with one server of three, want that it is not known", i, err)
		}
	}
	w.start(1)
	w.start(2)
	eventually(t, patience, "it is known again that there is no such record", func() bool {
		_, err := e[0].Get(t.Context(), "never")
		return errors.Is(err, replicas.ErrNotFound)
	})
}
