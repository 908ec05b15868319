package natskv

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// A world is a nats-server in this process, and an address at which stores find it, also after
// it was started again. How fast replicas notice what, and clusters, TLS and rights, show in
// interop/engines.
type world struct {
	t    *testing.T
	addr string

	mu sync.Mutex // guards s
	s  *server.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, addr: l.Addr().String()}
	w.start()
	t.Cleanup(w.stop)
	replicastest.NewProxy(t, l, func() (net.Conn, error) { return net.Dial("tcp", w.server().Addr().String()) })
	return w
}

// start starts a server that knows of nothing.
func (w *world) start() {
	w.t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "engine", Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "replica", Password: "open sesame",
		JetStream: true, StoreDir: w.t.TempDir(), NoSigs: true, NoLog: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(bridgetest.Patience) {
		w.t.Fatal("nats-server is not ready")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.s = s
}

func (w *world) server() *server.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.s
}

func (w *world) stop() {
	s := w.server()
	s.Shutdown()
	s.WaitForShutdown()
}

// store returns a store that can be used.
func (w *world) store() *Store {
	w.t.Helper()
	s := w.open()
	w.await(s)
	return s
}

// open returns a store that is about to connect. The test's end closes it.
func (w *world) open() *Store {
	w.t.Helper()
	u, err := replicas.ParseURL("nats://replica:open%20sesame@" + w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := Open(Options{URL: u, Prefix: "test", Name: w.t.Name(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			w.t.Errorf("Close: %v", err)
		}
	})
	return s
}

// await waits until a store can be used.
func (w *world) await(s *Store) {
	w.t.Helper()
	bridgetest.Eventually(w.t, "a store that can be used", func() bool {
		return s.Put(w.t.Context(), "usable", nil, time.Minute) == nil
	})
}

// look returns a client that sees what is in the server.
func (w *world) look() jetstream.JetStream {
	w.t.Helper()
	nc, err := nats.Connect("nats://"+w.server().Addr().String(), nats.UserInfo("replica", "open sesame"), nats.Timeout(bridgetest.Patience))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}
