package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// nodeVariable has the configuration of the node that this program is to be.
const nodeVariable = "REPLICAS_NATS_NODE"

// A nodeConfig is how a node is one of several, or the only one if it has no routes.
type nodeConfig struct {
	Name, Dir              string
	Port, Monitor, Cluster int
	Routes                 []string
}

// beNode is this program as a node of NATS, until SIGTERM.
func beNode(text string) error {
	var c nodeConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	var routes []*url.URL
	for _, host := range c.Routes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: host})
	}
	o := &server.Options{
		ServerName: c.Name, Host: "127.0.0.1", Port: c.Port, Username: engineUser, Password: enginePassword,
		HTTPHost: "127.0.0.1", HTTPPort: c.Monitor,
		JetStream: true, StoreDir: c.Dir, NoSigs: true, NoLog: true, Routes: routes,
	}
	if routes != nil {
		o.Cluster = server.ClusterOpts{Name: "engine", Host: "127.0.0.1", Port: c.Cluster, NoAdvertise: true}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	<-asked
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// A node is one of a cluster.
type node struct {
	nodeConfig
	p *process.Process // nil while it does not run
}

// A nodesEngine is a cluster of three nodes, each a process that can be killed and stopped.
type nodesEngine struct {
	*natsEngine // nothing of it runs
	nodes       []*node
}

func newNodes(t *testing.T) *nodesEngine {
	e := &nodesEngine{natsEngine: &natsEngine{t: t, dir: t.TempDir()}}
	var routes []string
	for i := range 3 {
		c := nodeConfig{Name: fmt.Sprint("engine-", i), Dir: filepath.Join(e.dir, fmt.Sprint(i)),
			Port: port(rig.FreeAddr(t)), Monitor: port(rig.FreeAddr(t)), Cluster: port(rig.FreeAddr(t))}
		routes = append(routes, fmt.Sprint("127.0.0.1:", c.Cluster))
		e.nodes = append(e.nodes, &node{nodeConfig: c})
	}
	for _, n := range e.nodes {
		n.Routes = routes
	}
	return e
}

func (e *nodesEngine) url(string) string {
	var all []string
	for _, n := range e.nodes {
		all = append(all, e.natsEngine.url(fmt.Sprint("127.0.0.1:", n.Port)))
	}
	return strings.Join(all, ",")
}

func (e *nodesEngine) start() {
	e.t.Helper()
	for _, n := range e.nodes {
		n.start(e.t)
	}
	e.awaitHealthy()
}

func (n *node) start(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	text, err2 := json.Marshal(n.nodeConfig)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	// With a directory of its own for what this program begins with.
	if n.p, err = process.Start(n.Name, []string{nodeVariable + "=" + string(text), "TMPDIR=" + t.TempDir()}, program); err != nil {
		t.Fatal(err)
	}
}

// awaitHealthy waits until each node has all that it should have, as whoever restarts one after
// another waits for.
func (e *nodesEngine) awaitHealthy() {
	e.t.Helper()
	rig.Until(e.t, 2*time.Minute, "the nodes are healthy", func() string {
		for _, n := range e.nodes {
			if said := n.health(); said != "" {
				return n.Name + ": " + said
			}
		}
		return ""
	})
}

// health says why a node is not healthy.
func (n *node) health() string {
	if _, err := n.ask("healthz"); err != nil {
		return err.Error()
	}
	return ""
}

// ask returns what a node says of itself.
func (n *node) ask(what string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", n.Monitor, what), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return text, err
}

func (e *nodesEngine) stop() {
	for _, n := range e.nodes {
		n.kill()
	}
}

func (n *node) kill() {
	if n.p != nil {
		n.p.Kill()
		n.p = nil
	}
}

func (n *node) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(n.p.Pid(), s); err != nil {
		t.Fatal(err)
	}
}

// of returns the node that a replica is connected to; nil if it is at none.
func (e *nodesEngine) of(r *replica) (found *node) {
	e.t.Helper()
	rig.Until(e.t, recovery, r.name+" is connected to a node", func() string {
		if err := connections(r.p.Pid(), func(_, other int) {
			for _, n := range e.nodes {
				if other == n.Port {
					found = n
				}
			}
		}); err != nil {
			return err.Error()
		}
		if found == nil {
			return "not yet"
		}
		return ""
	})
	return found
}

// connected names the replicas that are connected to a node.
func (e *nodesEngine) connected(w *world, n *node) (names []string) {
	for _, r := range w.replicas {
		if e.of(r) == n {
			names = append(names, r.name)
		}
	}
	return names
}

// TestFaultsOfNodes kills and stops nodes of NATS under sessions behind a balancer: none of them
// is lost, no request fails, no change and no write is lost.
func TestFaultsOfNodes(t *testing.T) {
	beside(t)
	l, servers := lone(t)
	w := newWorld(t, setup{engine: natsNodes, warn: true, servers: servers})
	e := w.engine.(*nodesEngine)
	for range faultRounds(t) {
		w.unharmed(t, l, "kill -9 of each node in turn", func() {
			first := e.of(w.replicas[0])
			for i := range e.nodes { // that of a replica is the first
				e.killed(t, w, e.nodes[(slices.Index(e.nodes, first)+i)%len(e.nodes)])
			}
		})
		for _, d := range size([]time.Duration{5 * time.Second}, []time.Duration{5 * time.Second, 20 * time.Second, time.Minute}) {
			w.unharmed(t, l, fmt.Sprintf("a node stopped for %v", d), func() { e.stopped(t, w, e.of(w.replicas[0]), d) })
		}
	}
}

// killed has a node killed, and started again when all have surely noticed.
func (e *nodesEngine) killed(t *testing.T, w *world, n *node) {
	t.Helper()
	t.Logf("%s is killed, to which %v are connected", n.Name, e.connected(w, n))
	n.kill()
	time.Sleep(size(6*time.Second, 15*time.Second))
	n.start(t)
	e.awaitHealthy()
}

// stopped has a node stopped for a while.
func (e *nodesEngine) stopped(t *testing.T, w *world, n *node, d time.Duration) {
	t.Helper()
	t.Logf("%s is stopped, to which %v are connected", n.Name, e.connected(w, n))
	n.signal(t, syscall.SIGSTOP)
	time.Sleep(d)
	n.signal(t, syscall.SIGCONT)
	e.awaitHealthy()
}

// unharmed has a company live through a fault, from before until some time after.
func (w *world) unharmed(t *testing.T, l *ledgers, name string, fault func()) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c := w.gather(t, l)
		time.Sleep(time.Second)
		begun := time.Now()
		fault()
		took := time.Since(begun)
		time.Sleep(3 * time.Second)
		c.wantUnharmed(t)
		w.wantServing(t)
		t.Logf("%s: %v", name, took.Round(time.Millisecond))
	})
}

// wantServing wants each replica to be ready, and to serve: sessions that it opens are used at the
// others.
func (w *world) wantServing(t *testing.T) {
	t.Helper()
	w.wantMembers(w.replicas...)
	for _, r := range w.replicas {
		if !r.isReady() {
			t.Errorf("%s is not ready any more", r.name)
		}
		s := w.mustOpen(r, "modern", nil)
		for _, other := range w.replicas {
			if a := s.mark(t.Context(), other, "serving"); a.problem() != "" {
				t.Errorf("a session of %s at %s: %s", r.name, other.name, a.problem())
			}
		}
	}
}
