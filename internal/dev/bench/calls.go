//go:build linux

package main

import "fmt"

// A callSize is a size of results with its budgets.
type callSize struct {
	name        string
	bytes       int
	calls       int // in each round, for a quarter of a second or so
	conns       int
	http, stdio row // budgets
	more        int // times as many rounds as asked for, if that is not 0: what takes least differs most
}

var callSizes = []callSize{
	{name: "small", bytes: 100, calls: 2500, conns: 8, http: row{most: 0.95, goal: 0.72}, stdio: row{most: 0.75, goal: 0.52}, more: 4},
	{name: "64 KiB", bytes: 64 << 10, calls: 700, conns: 8, http: row{most: 1, goal: 0.8}, stdio: row{most: 0.82, goal: 0.7}, more: 4},
	{name: "1 MiB", bytes: 1 << 20, calls: 60, conns: 4, http: row{most: 1, goal: 0.62}, stdio: row{most: 1.15, goal: 0.65}, more: 4},
}

// callers are the processes that the parts about calls need.
type callers struct {
	crew
	upstream, proxy, gateway *child
}

func (b *bench) hireCallers() (c *callers, err error) {
	c = &callers{}
	defer func() {
		if err != nil {
			_ = c.stop(b.ctx) // the first error is the one that counts
		}
	}()
	if c.upstream, err = c.hire(b, "upstream"); err != nil {
		return c, err
	}
	if c.proxy, err = c.hire(b, "proxy", "-upstream", c.upstream.addr); err != nil {
		return c, err
	}
	c.gateway, err = c.hire(b, "gateway", "-upstream", c.upstream.addr)
	return c, err
}

// callWays are the ways that calls go.
var callWays = []struct{ name, ours, theirs string }{
	{"HTTP→HTTP", "/mcp/http", "/mcp"},
	{"HTTP→stdio", "/mcp/stdio", "/mcp"},
	{"HTTP→HTTP, answered by a stream", "/mcp/stream", "/stream"},
}

// calls measures the CPU that a call costs the party in the middle.
func (b *bench) calls() error {
	took := make([][]pairs, len(callSizes))
	for range processes {
		c, err := b.hireCallers()
		if err != nil {
			return err
		}
		for i, s := range callSizes {
			if took[i], err = b.callsOf(c, s, took[i]); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if err := c.stop(b.ctx); err != nil {
			return err
		}
	}
	for i, s := range callSizes {
		for n, r := range []row{s.http, s.stdio, {}} {
			r.what, r.unit = "CPU of a call, "+callWays[n].name+", "+s.name, "×"
			r.got, r.detail = took[i][n].ratio(), took[i][n].detail("ReverseProxy")
			b.table.add(r)
		}
	}
	return nil
}

// A way is a route of calls through the gateway, against the same through the
// proxy.
type way struct {
	name, ours     string // and its path
	gateway, proxy *target
	took           pairs
}

// callsOf returns what calls of a size took on each way in these processes, after what they took before.
func (b *bench) callsOf(c *callers, s callSize, before []pairs) ([]pairs, error) {
	ways := make([]way, len(callWays))
	for i, of := range callWays {
		w := &ways[i]
		if w.ours = of.ours; before != nil {
			w.took = before[i]
		}
		var err error
		if w.gateway, err = newTarget(c.gateway, c.gateway.addr, modernCall(c.gateway.addr, of.ours, s.bytes), s.bytes, s.conns); err != nil {
			return nil, err
		}
		defer w.gateway.close()
		if w.proxy, err = newTarget(c.proxy, c.proxy.addr, legacyCall(c.proxy.addr, of.theirs, s.bytes), s.bytes, s.conns); err != nil {
			return nil, err
		}
		defer w.proxy.close()
	}
	for round := -1; round < max(max(s.more, 1)*b.o.rounds/processes, 1); round++ { // the first round warms up
		for i := range ways {
			if err := ways[i].round(s.calls, round); err != nil {
				return nil, err
			}
		}
	}
	var took []pairs
	for i := range ways {
		w := &ways[i]
		if err := b.profiled(c.gateway, fmt.Sprintf("call-%s-%d", w.ours[len("/mcp/"):], s.bytes), func() error { return w.profile(b, s.calls) }); err != nil {
			return nil, err
		}
		took = append(took, w.took)
	}
	return took, nil
}

// round measures both sides, in another order each time.
func (w *way) round(calls, i int) error {
	var ours, theirs float64
	var err error
	if i%2 == 0 {
		ours, err = w.gateway.cpuPerCall(calls)
	}
	if err == nil {
		theirs, err = w.proxy.cpuPerCall(calls)
	}
	if err == nil && i%2 != 0 {
		ours, err = w.gateway.cpuPerCall(calls)
	}
	if err == nil && i >= 0 {
		w.took.add(ours, theirs)
	}
	return err
}

// profile gives a CPU profile something to look at.
func (w *way) profile(b *bench, calls int) error {
	if b.o.profile == "" {
		return nil
	}
	return w.gateway.run(20 * calls)
}
