//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// memory measures the most memory that the gateway has at once under small calls, as many as take a
// few seconds: what it gathers as garbage before it collects is most of it.
func (b *bench) memory() error {
	const calls, conns = 40_000, 8
	c, err := b.hireCallers()
	if err != nil {
		return err
	}
	t, err := newTarget(c.gateway, c.gateway.addr, modernCall(c.gateway.addr, "/mcp/http", smallCall), smallCall, conns)
	if err != nil {
		return err
	}
	defer t.close()
	before, err := c.gateway.peak()
	if err == nil {
		err = t.run(calls)
	}
	if err == nil && b.o.profile != "" {
		err = c.gateway.ask(nil, "heap %s", filepath.Join(b.o.profile, "memory.heap.pprof"))
	}
	if err != nil {
		return err
	}
	after, err := c.gateway.peak()
	if err != nil {
		return err
	}
	b.table.add(row{what: "memory at its peak under small calls", got: after, unit: " MiB", most: 50.5, goal: 48, detail: fmt.Sprintf("%.1f MiB before", before)})
	return c.stop(b.ctx)
}

// peak returns the most memory that a child has had at once, in MiB.
func (c *child) peak() (float64, error) {
	return procSize(strconv.Itoa(c.cmd.Process.Pid), "status", "VmHWM:")
}
