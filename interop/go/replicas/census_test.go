package replicas

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A census counts what a replica has, without its connections with other replicas: these are
// kept for a while, now more, now less. Each costs either side a descriptor, and the side
// that has accepted it a goroutine.
type census struct {
	goroutines, descriptors int
	claims                  float64
	accepted, dialed        int // those connections
}

func (c census) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %v claims (and %d connections of other replicas, %d with them)",
		c.goroutines, c.descriptors, c.claims, c.accepted, c.dialed)
}

// more reports whether there is anything that there was not before.
func (c census) more(before census) bool {
	return c.goroutines > before.goroutines || c.descriptors > before.descriptors || c.claims > before.claims
}

// count takes the census of a replica that is at rest.
func (w *world) count(r *replica) (c census) {
	w.t.Helper()
	var g map[string]float64
	rig.Until(w.t, recovery, "no replica connects to "+r.name, func() string {
		c.accepted, c.dialed = w.between(r)
		g, c.goroutines = r.gauges(), r.goroutines()
		if accepted, dialed := w.between(r); accepted != c.accepted || dialed != c.dialed {
			return "one has, or has closed a connection"
		}
		return ""
	})
	c.goroutines -= c.accepted
	c.descriptors = int(g["process_open_fds"]) - c.accepted - c.dialed
	c.claims = g[ownClaims] + g[otherClaims]
	return c
}

// goroutines counts those of a replica. The gauge has some that gather metrics, now more, now
// less.
func (r *replica) goroutines() (n int) {
	r.w.t.Helper()
	status, text := r.get("/debug/pprof/goroutine?debug=1")
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		r.w.t.Fatalf("the goroutines of %s: %d, %v: %.300s", r.name, status, err, text)
	}
	return n
}

// between counts the connections of a replica with others: those that it has accepted, and
// those to them.
func (w *world) between(r *replica) (accepted, dialed int) {
	w.t.Helper()
	own := w.sockets(r)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", r.p.Pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // 1: local address, 2: the other, 3: state, 9: inode
		if len(f) < 10 || !own[f[9]] || f[3] == listening {
			continue
		}
		delete(own, f[9]) // the table may show one twice while it changes
		if portOf(f[1]) == port(r.peer) {
			accepted++
		}
		for _, other := range w.others(r) {
			if portOf(f[2]) == port(other.peer) {
				dialed++
			}
		}
	}
	return accepted, dialed
}

const listening = "0A" // in /proc/net/tcp

func portOf(addr string) int {
	_, hex, _ := strings.Cut(addr, ":")
	n, err := strconv.ParseInt(hex, 16, 32)
	if err != nil {
		return -1 // the head of the table
	}
	return int(n)
}

// sockets returns the inodes of a replica's sockets.
func (w *world) sockets(r *replica) map[string]bool {
	w.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", r.p.Pid())
	files, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	inodes := make(map[string]bool)
	for _, f := range files {
		to, err := os.Readlink(filepath.Join(dir, f.Name())) // it may have been closed
		if inode, ok := strings.CutPrefix(to, "socket:["); ok && err == nil {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes
}

// quiet returns the census of each replica once nothing is in flight, and connections with
// clients and servers that lie idle have gone.
func (w *world) quiet(t *testing.T) (all []census) {
	t.Helper()
	for _, r := range w.replicas {
		all = append(all, w.count(r))
	}
	since := time.Now()
	rig.Until(t, time.Minute, "the replicas come to rest", func() string {
		w.clients.CloseIdleConnections()
		for i, r := range w.replicas {
			if now := w.count(r); all[i].more(now) {
				all[i], since = now, time.Now()
			}
		}
		if time.Since(since) < 4*time.Second {
			return "they do not stand still yet"
		}
		return ""
	})
	return all
}

// wantNoMore waits until no replica has more than before.
func (w *world) wantNoMore(t *testing.T, before []census) {
	t.Helper()
	for i, r := range w.replicas {
		var now census
		rig.Until(t, 2*time.Minute, r.name+" has nothing left", func() string {
			w.clients.CloseIdleConnections()
			if now = w.count(r); now.more(before[i]) {
				return fmt.Sprintf("%v; before: %v", now, before[i])
			}
			return ""
		})
		t.Logf("%s: %v; before: %v", r.name, now, before[i])
	}
}
