package replicas

import (
	"path/filepath"
	"testing"
)

// TestLine01Transcripts: the SDK clients of the matrix, over Streamable HTTP and HTTP+SSE,
// in both eras, on three servers, see behind a balancer what they see of a single replica.
func TestLine01Transcripts(t *testing.T) {
	beside(t)
	clients := loadClients(t)
	plan := clients.cells(full)
	var single map[cell]transcript
	t.Run("single", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "files")
		w := newWorld(t, setup{count: 1, items: 200, servers: toured(t, dir, false)})
		single = w.tourAll(t, clients, dir, plan)
		wantWhole(t, single)
	})
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		beside(t)
		dir := filepath.Join(t.TempDir(), "files")
		w := newWorld(t, setup{engine: engine, items: 200, servers: toured(t, dir, true)})
		some := plan
		if !full && engine != nats {
			some = few(plan)
		}
		wantTranscripts(t, w.tourAll(t, clients, dir, some), single)
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

func (w *world) tourAll(t *testing.T, clients matrixClients, dir string, plan map[string][]cell) map[cell]transcript {
	t.Helper()
	g := &guide{w: w, clients: clients, dir: dir, front: func(front, server string) string {
		if front == "sse" {
			return w.balancer.base + "/sse/" + server
		}
		return w.balancer.url(server)
	}}
	return g.take(t, plan)
}
