//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// tasksPath is where the server has tasks of 2025-11-25: its tool "job" makes one, which goes on for ever.
const tasksPath = "/tasks"

const (
	taskTools = `{"tools":[{"name":"text_100"},{"name":"job","execution":{"taskSupport":"required"}}]}`
	taskMade  = `{"task":` + taskState + `}`
	taskState = `{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","status":"working","statusMessage":"The operation is in progress.",` +
		`"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:40:00Z","ttl":3600000,"pollInterval":5000}`
)

// tasks measures what a look at a task costs that a modern client holds of a legacy server, beside a
// small call at the same endpoint. Each connection looks at a task of its own: looks at one are shared.
func (b *bench) tasks() (err error) {
	const calls, conns = 2500, 8
	c := &crew{}
	up, err := c.hire(b, "upstream")
	if err != nil {
		return err
	}
	g, err := c.hire(b, "tasks", "-upstream", up.addr)
	if err != nil {
		return err
	}
	w := &way{}
	if w.proxy, err = newTarget(g, g.addr, modernCall(g.addr, "/mcp/tasks", smallCall), smallCall, conns); err != nil {
		return err
	}
	defer w.proxy.close()
	if w.gateway, err = newTargetOf(g, g.addr, holding(modernCallOf(g.addr, "/mcp/tasks", "job")), `"resultType":"task"`, 1, conns); err != nil {
		return err
	}
	defer w.gateway.close()
	for _, conn := range w.gateway.conns {
		if conn.request, err = conn.taskOf(w.gateway, g.addr); err != nil {
			return err
		}
	}
	for round := -1; round < 2*b.o.rounds; round++ { // the first round warms up; the others differ little
		if err := w.round(calls, round); err != nil {
			return err
		}
	}
	if err := b.profiled(g, "tasks", func() error { return w.profile(b, calls) }); err != nil {
		return err
	}
	b.table.add(row{what: "CPU of tasks/get of a task that is held", got: w.took.ratio(), unit: "×", most: 1.2, goal: 1.1, detail: w.took.detail("a small call at the same endpoint")})
	return c.stop(b.ctx)
}

// taskOf has a task made, and returns what a modern client posts to look at it.
func (c *clientConn) taskOf(t *target, host string) ([]byte, error) {
	var text bytes.Buffer
	if err := c.call(t, &text); err != nil {
		return nil, err
	}
	id, ok := wire.GetString(wire.Get(text.Bytes(), "result"), "taskId")
	if !ok {
		return nil, fmt.Errorf("%s answered %.500s, want a task", t.child.name, text.String())
	}
	return holding(post(host, "/mcp/tasks", `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"`+id+`",`+envelope+`}}`,
		"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tasks/get", "Mcp-Name: "+id)), nil
}

// holding returns a request of a client that holds tasks.
func holding(request []byte) []byte {
	head, body, _ := strings.Cut(string(request), "\r\n\r\n")
	length := len(body)
	body = strings.Replace(body, `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"`+spec.ExtensionTasks+`":{}}}`, 1)
	head = strings.Replace(head, fmt.Sprintf("Content-Length: %d", length), fmt.Sprintf("Content-Length: %d", len(body)), 1)
	return []byte(head + "\r\n\r\n" + body)
}

// answerTasks returns the result of a request to a server with tasks; nil for one that others have, too.
func answerTasks(m *wire.Message) []byte {
	switch name, _ := wire.GetString(m.Params, "name"); {
	case m.Method == spec.MethodInitialize:
		return []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"bench","version":"1"}}`)
	case m.Method == spec.MethodToolsList:
		return []byte(taskTools)
	case name == "job":
		return []byte(taskMade)
	case m.Method == spec.MethodTaskGet:
		return []byte(taskState)
	}
	return nil
}

// runTasks is mcpbridge with a server that has tasks.
func runTasks(c *control, o roleOptions) error {
	defer runtime.KeepAlive(make([]byte, ballast))
	log, err := newLog(o.log)
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Options{Logger: log, Servers: []gateway.ServerOptions{httpServer("tasks", o.upstream, tasksPath)}})
	if err != nil {
		return err
	}
	g.Start()
	defer func() { _ = g.Shutdown(context.Background()) }() // the child process ends with it
	return listenAndServe(c, g)
}
