package replicas

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// single is what the clients of the matrix see of one replica.
var single struct {
	once  sync.Once
	found map[cell]string
}

// TestLine01Transcripts: the SDK clients of the matrix, over Streamable HTTP and HTTP+SSE,
// in both eras, on three servers, see behind a balancer what they see of a single replica.
func TestLine01Transcripts(t *testing.T) {
	clients := loadClients(t)
	plan := clients.cells(full)
	dir := filepath.Join(t.TempDir(), "files") // the same for all, since results name it
	single.once.Do(func() {
		t.Run("single", func(t *testing.T) {
			w := newWorld(t, setup{count: 1, items: 200, servers: toured(t, dir, false)})
			single.found = w.tourAll(t, clients, dir, plan)
		})
	})
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		w := newWorld(t, setup{engine: engine, items: 200, servers: toured(t, dir, true)})
		some := plan
		if !full && engine != nats {
			some = few(plan)
		}
		compareTours(t, w.tourAll(t, clients, dir, some))
	})
}

// few leaves a third of the clients: those of each language.
func few(plan map[string][]cell) map[string][]cell {
	out := make(map[string][]cell)
	for _, client := range []string{"sdk-1.32.2", "go-1.8.0", "python-2"} {
		out[client] = plan[client]
	}
	return out
}

func (w *world) tourAll(t *testing.T, clients matrixClients, dir string, plan map[string][]cell) map[cell]string {
	t.Helper()
	g := &guide{w: w, clients: clients, dir: dir, front: func(front, server string) string {
		if front == "sse" {
			return w.balancer.base + "/sse/" + server
		}
		return w.balancer.url(server)
	}}
	return g.take(t, plan)
}

func compareTours(t *testing.T, found map[cell]string) {
	t.Helper()
	for at, got := range found {
		want := single.found[at]
		if got == want && strings.Count(got, "\n") > len(tours[at.server]) {
			continue
		}
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range max(len(gotLines), len(wantLines)) {
			var g, w string
			if i < len(gotLines) {
				g = gotLines[i]
			}
			if i < len(wantLines) {
				w = wantLines[i]
			}
			if g != w || i == len(gotLines)-1 {
				t.Errorf("%s, line %d:\n  got  %.600s\n  want %.600s", at, i+1, g, w)
				break
			}
		}
	}
	t.Logf("%d cells", len(found))
}
