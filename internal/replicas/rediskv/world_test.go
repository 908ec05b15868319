package rediskv

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/alicebob/miniredis/v2"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// A world is a miniredis, by the clock of a bubble, and what leads there. What a real Redis
// does otherwise shows in interop/engines.
type world struct {
	t    *testing.T
	m    *miniredis.Miniredis
	l    *bridgetest.Listener
	busy sync.WaitGroup

	mu sync.Mutex // guards up, and m while it is started, stopped or given a connection
	up bool
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, m: miniredis.NewMiniRedis(), l: bridgetest.Listen()}
	w.m.ClockTTL(true)
	w.m.RequireAuth("open/sesame?1")
	w.Start(false)
	w.busy.Go(w.serve) // ends with the listener
	t.Cleanup(func() {
		w.l.Close()
		w.busy.Wait()
		w.Stop()
	})
	return w
}

func (w *world) serve() {
	for {
		c, err := w.l.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		if w.up {
			w.m.Server().ServeConn(c)
		} else {
			c.Close()
		}
		w.mu.Unlock()
	}
}

func (w *world) Start(empty bool) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if empty {
		w.m.FlushAll()
	}
	c, err := w.m.Dial() // which starts a server without a socket
	if err != nil {
		w.t.Fatal(err)
	}
	c.Close()
	w.up = true
}

func (w *world) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = false
	w.m.Close()
}

func (w *world) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	s, stall := w.open(t)
	e := member.New(s, member.Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("closing an engine: %v", err)
		}
	})
	return e, stall
}

// open returns a store, and what stalls its connections or has them go on. Whoever has it
// closes it.
func (w *world) open(t *testing.T) (*Store, func(bool)) {
	t.Helper()
	u, err := replicas.ParseURL("redis://:open%2Fsesame%3F1@redis.example/2")
	if err != nil {
		t.Fatal(err)
	}
	near := bridgetest.Listen()
	p := replicastest.NewProxy(t, near, func() (net.Conn, error) { return w.l.DialContext(context.Background(), "tcp", "") })
	return Open(Options{URL: u, Prefix: "test", Name: "test", Logger: slog.New(slog.DiscardHandler), Dial: near.DialContext}), p.Stall
}

// store returns a store that the test's end closes.
func (w *world) store(t *testing.T) (*Store, func(bool)) {
	t.Helper()
	s, stall := w.open(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s, stall
}

func TestEngine(t *testing.T) {
	replicastest.Suite(t, synctest.Test, func(t *testing.T) replicastest.World { return newWorld(t) })
}
