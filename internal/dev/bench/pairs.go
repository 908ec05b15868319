//go:build linux

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// modernPath is where the upstream is a server of 2026-07-28.
const modernPath = "/modern"

// listedTools is how many tools a list has that is measured, of some 500 bytes each.
const listedTools = 10

// An eraPair is calls of clients of one era at a server of one era, against the same through a proxy in
// the server's era.
type eraPair struct {
	what       string
	old        bool   // the clients have sessions of 2025-11-25
	asked      bool   // they can be asked
	quiet      bool   // the gateway writes no log
	server     string // the endpoint
	proxied    func(addr string) []byte
	method     string
	most, goal float64
}

func proxiedCall(addr string) []byte       { return legacyCall(addr, "/mcp", smallCall) }
func proxiedModernCall(addr string) []byte { return modernCall(addr, modernPath, smallCall) }
func proxiedList(addr string) []byte       { return legacyList(addr, listPath(listedTools)) }

// eraPairs are the ways that calls does not measure.
var eraPairs = []eraPair{
	{what: "a small call, modern→legacy, without a log", quiet: true, server: "http", proxied: proxiedCall, method: spec.MethodToolsCall, most: 0.95, goal: 0.68},
	{what: "a small call, legacy→modern", old: true, server: "modern", proxied: proxiedModernCall, method: spec.MethodToolsCall, most: 1.08, goal: 0.8},
	{what: "a small call, modern→modern", server: "modern", proxied: proxiedModernCall, method: spec.MethodToolsCall, most: 0.95, goal: 0.7},
	{what: "a small call, legacy→legacy", old: true, server: "http", proxied: proxiedCall, method: spec.MethodToolsCall, most: 1.03, goal: 0.75},
	{what: "a small call of a client that can be asked, modern→legacy", asked: true, server: "http", proxied: proxiedCall, method: spec.MethodToolsCall, most: 1.05, goal: 0.8},
	{what: fmt.Sprintf("a list of %d tools, modern→legacy", listedTools), server: "listed", proxied: proxiedList, method: spec.MethodToolsList, most: 1.07, goal: 0.8},
	{what: fmt.Sprintf("a list of %d tools, modern→legacy over stdio", listedTools), server: "stdio", proxied: proxiedList, method: spec.MethodToolsList, most: 0.84, goal: 0.7},
}

// listPath is where the upstream has so many tools.
func listPath(n int) string { return fmt.Sprint(toolsPath, "/", n) }

// legacyList is what a legacy client posts for a list of tools.
func legacyList(host, path string) []byte {
	return post(host, path, `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`, "Mcp-Session-Id: s1", "MCP-Protocol-Version: 2025-11-25")
}

// pairs measures what calls cost in pairs of eras, and lists.
func (b *bench) pairs() error {
	took := make([]pairs, len(eraPairs))
	for range processes {
		if err := b.pairsOf(took); err != nil {
			return err
		}
	}
	for i := range eraPairs {
		p := &eraPairs[i]
		b.table.add(row{what: "CPU of " + p.what, got: took[i].ratio(), unit: "×", most: p.most, goal: p.goal, detail: took[i].detail("ReverseProxy")})
	}
	return nil
}

// pairsOf adds what they took in new processes.
func (b *bench) pairsOf(took []pairs) error {
	c, err := b.hireCallers()
	if err != nil {
		return err
	}
	logging := c.gateway
	quiet, err := c.hire(b, "gateway", "-upstream", c.upstream.addr, "-log", "off")
	if err != nil {
		return errors.Join(err, c.stop(b.ctx))
	}
	for i := range eraPairs {
		if c.gateway = logging; eraPairs[i].quiet {
			c.gateway = quiet
		}
		if err := b.pairOf(c, &eraPairs[i], &took[i]); err != nil {
			return fmt.Errorf("%s: %w", eraPairs[i].what, err)
		}
	}
	return c.stop(b.ctx)
}

func (b *bench) pairOf(c *callers, p *eraPair, took *pairs) (err error) {
	const calls, conns = 2500, 8
	w, has := &way{took: *took}, `"content":[{"type":"text"`
	if p.method == spec.MethodToolsList {
		has = `"tools":[{"name":"`
	}
	request, err := p.request(c.gateway.addr)
	if err != nil {
		return err
	}
	if w.gateway, err = newTargetOf(c.gateway, c.gateway.addr, request, has, smallCall, conns); err != nil {
		return err
	}
	defer w.gateway.close()
	for _, conn := range w.gateway.conns { // in a session of its own, whose requests have ids of their own
		if conn.request, err = p.request(c.gateway.addr); err != nil {
			return err
		}
	}
	if w.proxy, err = newTargetOf(c.proxy, c.proxy.addr, p.proxied(c.proxy.addr), has, smallCall, conns); err != nil {
		return err
	}
	defer w.proxy.close()
	for round := -1; round < max(4*b.o.rounds/processes, 1); round++ { // the first round warms up
		if err := w.round(calls, round); err != nil {
			return err
		}
	}
	if err := b.profiled(c.gateway, "pair-"+strings.ReplaceAll(p.what, " ", "-"), func() error { return w.profile(b, calls) }); err != nil {
		return err
	}
	*took = w.took
	return nil
}

// request returns what a client posts to the gateway. A client of 2025-11-25 opens a session first.
func (p *eraPair) request(addr string) ([]byte, error) {
	path := "/mcp/" + p.server
	switch {
	case p.old:
		session, err := openSession("http://" + addr + path)
		if err != nil {
			return nil, err
		}
		return sessionCall(addr, path, session, smallCall), nil
	case p.method == spec.MethodToolsList:
		return modernList(addr, path), nil
	}
	if p.asked {
		return modernCallWith(addr, path, toolName(smallCall), strings.Replace(envelope, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)), nil
	}
	return modernCall(addr, path, smallCall), nil
}

// answerModern appends the response of the server of 2026-07-28.
func (s *legacyServer) answerModern(dst []byte, m *wire.Message) []byte {
	result := []byte(`{"resultType":"complete"}`)
	switch m.Method {
	case spec.MethodDiscover:
		result = []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
	case spec.MethodToolsCall:
		name, _ := wire.GetString(m.Params, "name")
		result = append([]byte(`{"resultType":"complete",`), s.result(name)[1:]...)
	}
	return wire.AppendResult(dst, m.ID, result, nil)
}
