//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

const (
	// smallCall is the size of the result of a small call, in bytes.
	smallCall = 100
	// manyMembers is how many members the largest group has, with toolsOfEach tools each.
	manyMembers, toolsOfEach = 50, 40
)

// groupWays are what a request through a group costs beside the same at a server's own endpoint, in
// one process. Their budgets are those of rule G-20.
var groupWays = []struct {
	what         string
	ours, theirs func(addr string) []byte
	has          string // a text in the answer
	most, goal   float64
	calls, conns int // in each round
	beside       string
}{
	{"small call through a group", callOf("/mcp/all", "files__"), callOf("/mcp/files", ""), `"content":[{"type":"text"`, 1.05, 1.03, 2500, 8, "at its server's endpoint"},
	{"small call through a group without prefixes", callOf("/mcp/bare", ""), callOf("/mcp/files", ""), `"content":[{"type":"text"`, 1.05, 1.03, 2500, 8, "at its server's endpoint"},
	{"kept list of 50 servers with 40 tools each", listAt("/mcp/many"), listAt("/mcp/plain"), `"tools":[{"name":"`, 1.2, 1.1, 60, 4, "one list of as many bytes"},
}

func callOf(path, prefix string) func(string) []byte {
	return func(addr string) []byte { return modernCallOf(addr, path, prefix+toolName(smallCall)) }
}

func listAt(path string) func(string) []byte {
	return func(addr string) []byte { return modernList(addr, path) }
}

// groups measures what a group adds to a call and to a list.
func (b *bench) groups() error {
	took := make([]pairs, len(groupWays))
	for range processes {
		if err := b.groupsIn(took); err != nil {
			return err
		}
	}
	for i, of := range groupWays {
		b.table.add(row{what: "CPU of a " + of.what, got: took[i].ratio(), unit: "×", most: of.most, goal: of.goal, detail: took[i].detail(of.beside)})
	}
	return nil
}

// groupsIn adds what the ways took in new processes.
func (b *bench) groupsIn(took []pairs) error {
	c := &crew{}
	up, err := c.hire(b, "upstream")
	if err != nil {
		return err
	}
	g, err := c.hire(b, "groups", "-upstream", up.addr)
	if err != nil {
		return err
	}
	for i := range groupWays {
		if err := b.groupsOf(g, i, &took[i]); err != nil {
			return fmt.Errorf("%s: %w", groupWays[i].what, err)
		}
	}
	return c.stop(b.ctx)
}

func (b *bench) groupsOf(g *child, i int, took *pairs) (err error) {
	of, w := groupWays[i], &way{took: *took}
	if w.gateway, err = newTargetOf(g, g.addr, of.ours(g.addr), of.has, smallCall, of.conns); err != nil {
		return err
	}
	defer w.gateway.close()
	if w.proxy, err = newTargetOf(g, g.addr, of.theirs(g.addr), of.has, smallCall, of.conns); err != nil {
		return err
	}
	defer w.proxy.close()
	for round := -1; round < max(10*b.o.rounds/processes, 1); round++ { // the first round warms up; a round varies by more than what is measured
		if err := w.round(of.calls, round); err != nil {
			return err
		}
	}
	if err := b.profiled(g, fmt.Sprintf("group-%d", i), func() error { return w.profile(b, of.calls) }); err != nil {
		return err
	}
	*took = w.took
	return nil
}

// runGroups is mcpbridge with groups of the upstream: of two servers, and of many that keep their
// lists of tools.
func runGroups(c *control, o roleOptions) error {
	defer runtime.KeepAlive(make([]byte, ballast))
	log, err := newLog(o.log)
	if err != nil {
		return err
	}
	two := []string{"files", "docs"}
	opts := gateway.Options{Logger: log, Groups: []gateway.GroupOptions{{Name: "all", Members: two}, {Name: "bare", Members: two, OwnNames: true}, {Name: "many"}}}
	opts.Servers = []gateway.ServerOptions{
		toolServer(o.upstream, "files", "", toolsOfEach), toolServer(o.upstream, "docs", "docs_", toolsOfEach),
		toolServer(o.upstream, "plain", "server10__", manyMembers*toolsOfEach), // as long as most names in the group
	}
	for i := range manyMembers {
		name := fmt.Sprintf("server%d", i)
		opts.Servers = append(opts.Servers, toolServer(o.upstream, name, "", toolsOfEach))
		opts.Groups[2].Members = append(opts.Groups[2].Members, name)
	}
	g, err := gateway.New(opts)
	if err != nil {
		return err
	}
	g.Start()
	defer func() { _ = g.Shutdown(context.Background()) }() // the child process ends with it
	return listenAndServe(c, g)
}

// toolServer is the upstream with a number of tools, whose list is kept.
func toolServer(upstream, name, begin string, tools int) gateway.ServerOptions {
	s := httpServer(name, upstream, fmt.Sprintf("%s%s/%d", toolsPath, begin, tools))
	s.Cache = map[string]gateway.CacheHint{spec.MethodToolsList: {TTL: time.Hour, Public: true, Keep: true}}
	return s
}
