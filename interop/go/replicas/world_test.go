package replicas

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// recovery is what anything may take to be in order again.
const recovery = 2 * time.Minute

// A setup says what kind of world is wanted.
type setup struct {
	engine      string // nats, redis, peers, or "" for replicas that know nothing of each other
	count       int    // of replicas; 0 means 3
	links       bool   // faults are wanted between replicas, and between them and the engine
	engineLinks bool   // faults are wanted between replicas and the engine alone
	warn        bool   // the replicas' logs have no line for each request
	strict      bool   // no request is sent again: the test judges what is refused
	program     string // what replicas run; "" for the program of this tree
	items       int    // of resources that the servers have, res://item/00…; 0 means 60

	servers string   // further entries of servers, a line each
	server  string   // further settings of legacy and modern, as in a YAML flow mapping: ", linger: 1s"
	config  string   // further lines of the configuration
	env     []string // of the replicas
	clocks  []string // by how much the clock of each is ahead, as in "-5s"; nil: none is
}

// A world is an engine, servers, replicas and a balancer.
type world struct {
	t        *testing.T
	setup    setup
	dir      string
	engine   engine // nil without
	legacy   *fixture
	modern   *fixture
	replicas []*replica
	balancer *balancer

	clients *http.Client // that talk to mcpbridge
	us      *http.Client // for all else

	mu    sync.Mutex     // guards procs
	procs map[int]string // the replicas that run, by their process
}

// newWorld starts everything and waits for it.
func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	if s.count == 0 {
		s.count = 3
	}
	w := &world{t: t, setup: s, dir: artefacts(t), procs: make(map[int]string),
		clients: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: 5 * time.Second}},
		us:      &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}}
	if err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.clear)
	w.engine = newEngine(t, s.engine)
	w.legacy, w.modern = newFixture(w, "legacy", programs.legacy), newFixture(w, "modern", programs.modern)
	for i := range s.count {
		w.replicas = append(w.replicas, w.newReplica(string(rune('A'+i))))
	}
	t.Cleanup(w.close) // while the links are there
	for i, r := range w.replicas {
		if s.clocks != nil {
			r.setClock(s.clocks[i])
		}
		w.configure(r)
		r.launch()
	}
	for _, r := range w.replicas {
		r.waitReady()
	}
	w.balancer = newBalancer(t, w.replicas)
	w.wantMembers(w.replicas...)
	return w
}

func (w *world) newReplica(name string) *replica {
	t := w.t
	r := &replica{w: w, name: name, program: cmp.Or(w.setup.program, programs.Bridge), listen: rig.FreeAddr(t), admin: rig.FreeAddr(t), peer: rig.FreeAddr(t),
		config: filepath.Join(w.dir, name+".yaml"), log: filepath.Join(w.dir, name+".log")}
	if w.setup.links {
		r.inbound = newLink(t, r.peer, w)
	}
	if (w.setup.links || w.setup.engineLinks) && w.engine != nil {
		r.toEngine = newLink(t, w.engine.addr(), w)
	}
	return r
}

// configure writes a replica's configuration.
func (w *world) configure(r *replica) {
	w.t.Helper()
	level := "info"
	if w.setup.warn && os.Getenv("REPLICAS_LOG") == "" {
		level = "warn"
	}
	text := fmt.Sprintf("listen: %s\nadmin: %s\nlog: {level: %s}\nremember: false\nstate_dir: %q\n%s\n%s\nservers:\n", r.listen, r.admin, level,
		filepath.Join(w.dir, r.name+".state"), w.setup.config, w.sharing(r))
	for _, f := range []*fixture{w.legacy, w.modern} {
		text += fmt.Sprintf("  %s: {url: %q%s}\n", f.name, "http://"+f.addr+"/mcp", w.setup.server)
	}
	text += w.setup.servers
	if r.edit != nil {
		text = r.edit(text)
	}
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

const sharedKey = "a key of sixteen characters and more"

// sharing is the block replicas of a configuration.
func (w *world) sharing(r *replica) string {
	if w.setup.engine == "" {
		return ""
	}
	var of string
	switch {
	case w.engine == nil:
		var addrs []string
		for _, other := range w.replicas {
			addrs = append(addrs, other.advertised())
		}
		of = "peers: dns://" + strings.Join(addrs, ",")
	case r.toEngine != nil:
		of = "engine: " + w.engine.url(r.toEngine.addr)
	default:
		of = "engine: " + w.engine.url(w.engine.addr())
	}
	return fmt.Sprintf("replicas:\n  %s\n  keys: [%q]\n  peer: %s\n  advertise: %s", of, sharedKey, r.peer, r.advertised())
}

// wantMembers waits until each replica that lives knows all of them, and no other.
func (w *world) wantMembers(living ...*replica) {
	w.t.Helper()
	if w.setup.engine == "" {
		return
	}
	rig.Until(w.t, recovery, "the replicas know each other", func() string {
		for _, r := range living {
			if n := r.gauges()[membersGauge]; n != float64(len(living)) {
				return fmt.Sprintf("%s has %v members, want %d", r.name, n, len(living))
			}
		}
		return ""
	})
}

// membersGauge counts the replicas that live, as one of them sees it.
const membersGauge = "mcpbridge_replicas"

func (w *world) enter(pid int, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.procs[pid] = name
}

func (w *world) leave(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.procs, pid)
}

// running returns the replicas that run, by their process.
func (w *world) running() map[int]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.procs)
}

// part makes a fault between two replicas, for both directions.
func (w *world) part(a, b *replica, f fault) {
	a.inbound.set(b.name, f, f)
	b.inbound.set(a.name, f, f)
}

// heal ends all faults.
func (w *world) heal() {
	for _, r := range w.replicas {
		if r.inbound != nil {
			r.inbound.heal()
		}
		if r.toEngine != nil {
			r.toEngine.heal()
		}
	}
}

// close ends the replicas, which must not be dead, nor need to be killed. The order is that
// of a rollout's end: one after the other.
func (w *world) close() {
	w.clients.CloseIdleConnections()
	w.heal()
	for _, r := range w.replicas {
		r.stop(time.Minute)
	}
	w.us.CloseIdleConnections()
}

// clear removes the files of a test that has passed.
func (w *world) clear() {
	if !w.t.Failed() {
		_ = os.RemoveAll(w.dir) // the next run removes what is left
		return
	}
	for _, r := range w.replicas {
		w.t.Log(r.tail(3 << 10))
	}
	w.t.Logf("configurations and whole logs are in %s", w.dir)
}

// total sums a gauge over the replicas that run.
func (w *world) total(name string) (sum float64) {
	w.t.Helper()
	for _, r := range w.replicas {
		if r.p != nil {
			sum += r.gauges()[name]
		}
	}
	return sum
}

// each does something for 0 to n-1, some at a time, and returns the first error.
func each(n int, do func(i int) error) error { return rig.Each(n, 32, do) }

// until waits for what happens in another process.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	rig.Until(t, recovery, what, func() string {
		if !ok() {
			return "not yet"
		}
		return ""
	})
}
