package engines

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
)

// natsWorld is a nats-server with JetStream.
type natsWorld struct {
	t    *testing.T
	port int
	dir  string
	s    *server.Server
}

func TestNATS(t *testing.T) {
	t.Parallel()
	replicastest.Suite(t, nil, func(t *testing.T) replicastest.World {
		w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
		w.Start(false)
		t.Cleanup(w.Stop)
		return w
	})
}

func (w *natsWorld) Start(empty bool) {
	w.t.Helper()
	if empty {
		clear(w.t, w.dir)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "engine", Host: "127.0.0.1", Port: w.port, Username: "replica", Password: "open sesame",
		JetStream: true, StoreDir: w.dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(60 * time.Second) {
		w.t.Fatal("nats-server is not ready")
	}
	w.s = s
}

func (w *natsWorld) Stop() {
	w.s.Shutdown()
	w.s.WaitForShutdown()
}

func (w *natsWorld) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	p := newProxy(t, w.port)
	return natsEngine(t, natskv.Options{URL: parse(t, "nats://replica:open%20sesame@"+p.addr)}), p.Stall
}

// natsEngine is what a replica has.
func natsEngine(t *testing.T, o natskv.Options) replicas.Engine {
	t.Helper()
	o.Prefix, o.Name, o.Logger = "test", t.Name(), logger()
	s, err := natskv.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, member.New(s, member.Options{Logger: o.Logger}))
}

// clear removes what is in a directory.
func clear(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
