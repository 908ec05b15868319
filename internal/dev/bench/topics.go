//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// topicURIs returns n URIs from the one with a number on.
func topicURIs(from, n int) []string {
	uris := make([]string, n)
	for i := range uris {
		uris[i] = topicName(from + i)
	}
	return uris
}

func topicName(i int) string { return "file:///srv/notes/" + strconv.Itoa(1_000_000+i) + ".md" }

const (
	// burst is the number of streams, the same in both cases, and of events on
	// their way at a time, one for each stream.
	burst   = 10
	million = 1_000_000
)

// topics measures an event among a million URIs against one among ten: from the
// back's Publish through bus, index and mailbox to the socket.
func (b *bench) topics() error {
	var cr crew
	many, err := b.hireTopics(&cr, million/burst)
	if err != nil {
		return err
	}
	few, err := b.hireTopics(&cr, 1)
	if err != nil {
		return err
	}
	var took pairs
	for i := -1; i < b.o.rounds; i++ { // the first round warms up
		var per [2]float64
		for j := range per {
			k := (i + 1 + j) % 2
			const bursts = 1500
			c := []*child{many, few}[k]
			if per[k], err = c.cpu(func() error { return c.ask(nil, "publish %d", bursts) }); err != nil {
				return err
			}
			per[k] /= bursts * burst
		}
		if i >= 0 {
			took.add(per[0], per[1])
		}
	}
	if b.o.profile != "" {
		if err := b.profiled(many, "topics", func() error { return many.ask(nil, "publish 20000") }); err != nil {
			return err
		}
	}
	b.table.add(row{what: "CPU per event, 1,000,000 URIs against 10", got: took.ratio(), unit: "×", most: 1.5, goal: 1.15, detail: took.detail("10 URIs")})
	return cr.stop(b.ctx)
}

// hireTopics starts a gateway whose streams have so many URIs each.
func (b *bench) hireTopics(cr *crew, each int) (*child, error) {
	server, err := cr.hire(b, "topics")
	if err != nil {
		return nil, err
	}
	clients, err := cr.hire(b, "readers")
	if err != nil {
		return nil, err
	}
	if err := clients.ask(nil, "open topics %s %d %d", server.addr, burst, each); err != nil {
		return nil, err
	}
	return server, server.ask(nil, "settle")
}

// A source is a back that grants every topic, and makes events when told. A
// legacy server in its place would need a million subscribes first.
type source struct {
	changes mcp.Changes
	scope   atomic.Pointer[string]
	uris    atomic.Int64
}

var errOnlyTopics = errors.New("this back serves nothing but listen streams")

func (s *source) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return nil, errOnlyTopics
}

func (s *source) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{"resources":{"subscribe":true}}`)}, nil
}

func (s *source) Watch(_ context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	s.scope.Store(&p.Scope)
	s.uris.Add(int64(len(want)))
	return want, func() {}, nil
}

func (s *source) Start()                      {}
func (s *source) Era() spec.Era               { return spec.Legacy }
func (s *source) Err() error                  { return nil }
func (s *source) Close(context.Context) error { return nil }

// written tells when events were written to clients.
type written struct {
	events atomic.Int64
	goal   atomic.Int64
	there  chan struct{} // capacity 1
}

func (w *written) add(n int) {
	if n > 0 && w.events.Add(int64(n)) == w.goal.Load() {
		w.there <- struct{}{}
	}
}

// A countingListener has the events counted that are written to its connections. Streams get
// one event at a time, which no write divides.
type countingListener struct {
	net.Listener
	written *written
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, l.written}, nil
}

type countedConn struct {
	net.Conn
	written *written
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.add(bytes.Count(p[:n], []byte(spec.NotifyResourceUpdated)))
	return n, err
}

// topicLimits let a few clients follow a million URIs, or many of them one each.
var topicLimits = map[string]int64{
	"streams": 100_000, "requests": 100_000, "requests_each": 100_000, "client_sessions": 100_000, "client_sessions_each": 100_000,
	"listen_topics": million, "body": 64 << 20, "filter": 64 << 20, "memory": 4 << 30,
}

func runTopics(c *control, o roleOptions) error {
	log, err := newLog(o.log)
	if err != nil {
		return err
	}
	s, w := &source{}, &written{there: make(chan struct{}, 1)}
	opts := gateway.Options{Logger: log, Limits: topicLimits, Servers: []gateway.ServerOptions{{Name: "topics"}}}
	hook.Set(&opts, cmdhook.Hooks{Backs: map[string]func(mcp.Changes) (mcp.Back, error){
		"topics": func(ch mcp.Changes) (mcp.Back, error) { s.changes = ch; return s, nil },
	}})
	g, err := gateway.New(opts)
	if err != nil {
		return err
	}
	l, err := gateway.Listen(context.Background(), "127.0.0.1:0", 0)
	if err != nil {
		return err
	}
	c.commands["publish"] = func(args []string) (any, error) { return nil, s.publish(args, w) }
	return c.serve(&countingListener{l, w}, g)
}

// publish sends bursts of events for random URIs, no two of a burst for the same,
// each burst after the former was written.
func (s *source) publish(args []string, w *written) error {
	bursts, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	uris, scope := int(s.uris.Load()), *s.scope.Load()
	for range bursts {
		w.goal.Store(w.events.Load() + burst)
		part := uris / burst
		for i := range burst {
			uri := topicName(i*part + rand.IntN(part))
			s.changes.Publish(fanout.Event{Topic: fanout.Topic{Scope: scope, Kind: fanout.ResourceUpdated, URI: uri}, URI: uri})
		}
		select {
		case <-w.there:
		case <-time.After(10 * time.Second):
			return fmt.Errorf("%d events were not written", w.goal.Load()-w.events.Load())
		}
	}
	return nil
}
