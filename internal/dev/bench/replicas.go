//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway"
)

// forwardSizes are sizes of the results of forwarded calls.
var forwardSizes = []callSize{
	{name: "1 KiB", bytes: 1 << 10, calls: 2000, conns: 8, http: row{most: 2.1, goal: 1.6}},
	{name: "64 KiB", bytes: 64 << 10, calls: 500, conns: 8},
	{name: "1 MiB", bytes: 1 << 20, calls: 60, conns: 4, http: row{most: 1.45, goal: 1.3}},
}

// forwards measures what a call costs two replicas together, of which one holds the session
// and the other got the call, against one that the holder got.
func (b *bench) forwards() error {
	c := &crew{}
	up, err := c.hire(b, "upstream")
	if err != nil {
		return err
	}
	both, err := c.hire(b, "replicas", "-upstream", up.addr)
	if err != nil {
		return err
	}
	sessions, err := openSessions(both.addr, 8)
	if err != nil {
		return err
	}
	for _, s := range forwardSizes {
		if err := b.forwardsOf(both, sessions, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return c.stop(b.ctx)
}

func (b *bench) forwardsOf(both *child, sessions []string, s callSize) (err error) {
	w := &way{name: "forwarded", ours: "/edge/mcp/http"}
	if w.gateway, err = sessionTarget(both, w.ours, sessions, s); err != nil {
		return err
	}
	defer w.gateway.close()
	if w.proxy, err = sessionTarget(both, "/mcp/http", sessions, s); err != nil {
		return err
	}
	defer w.proxy.close()
	for i := -1; i < b.o.rounds; i++ { // the first round warms up
		if err := w.round(s.calls, i); err != nil {
			return err
		}
	}
	if err := b.profiled(both, fmt.Sprintf("forward-%d", s.bytes), func() error { return w.profile(b, s.calls) }); err != nil {
		return err
	}
	r := s.http
	r.what, r.unit = "CPU of a forwarded call, both replicas, "+s.name, "×"
	r.got, r.detail = w.took.ratio(), w.took.detail("where its session is")
	b.table.add(r)
	return nil
}

// sessionTarget is a target whose connections have a session each: the ids of requests are
// the same.
func sessionTarget(c *child, path string, sessions []string, s callSize) (*target, error) {
	t, err := newTarget(c, c.addr, sessionCall(c.addr, path, sessions[0], s.bytes), s.bytes, s.conns)
	if err != nil {
		return nil, err
	}
	for i, conn := range t.conns {
		conn.request = sessionCall(c.addr, path, sessions[i], s.bytes)
	}
	return t, nil
}

func openSessions(addr string, n int) (sessions []string, err error) {
	for range n {
		session, err := openSession("http://" + addr + "/mcp/http")
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, session)
	}
	return sessions, nil
}

// sessionCall is what a legacy client posts in a session.
func sessionCall(host, path, session string, size int) []byte {
	return []byte(strings.Replace(string(legacyCall(host, path, size)), "Mcp-Session-Id: s1", "Mcp-Session-Id: "+session, 1))
}

// runReplicas is two replicas in one process: the second one is below /edge.
func runReplicas(c *control, o roleOptions) error {
	log, err := newLog(o.log)
	if err != nil {
		return err
	}
	addrs, err := freeAddrs(2)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for i, path := range []string{"/", "/edge/"} {
		g, err := gateway.New(gateway.Options{Logger: log, Servers: []gateway.ServerOptions{httpServer("http", o.upstream, "/mcp")}, Replicas: &gateway.Replicas{
			Peers: "dns://" + strings.Join(addrs, ","), Keys: []string{"a key of both replicas"}, Listen: addrs[i],
		}})
		if err != nil {
			return err
		}
		g.Start()
		defer func() { _ = g.Shutdown(context.Background()) }() // the child process ends with it
		if err := g.Join(context.Background()); err != nil {
			return err
		}
		mux.Handle(path, http.StripPrefix(strings.TrimSuffix(path, "/"), g))
	}
	return listenAndServe(c, mux)
}

// freeAddrs returns addresses of this machine on which nobody listens.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after the last one, so that they differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
