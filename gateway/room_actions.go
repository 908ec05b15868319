package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/gateway/internal/overview"
	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// mostPages bounds the pages of a list of tools that is looked through.
const mostPages = 100

// Rates implements [cmdhook.Inner].
func (g inner) Rates(server string) *status.Rates { return g.outer.metrics.Rates(server) }

// Restart implements [cmdhook.Inner]: the server is replaced by one of the same options, as by a
// reload that changes them.
func (g inner) Restart(server string) error {
	log, err := g.outer.restart(server)
	if err != nil {
		return fmt.Errorf("server %q was not restarted: %w", server, err)
	}
	log.Write(audit.Restarted(server, string(overview.Principal)))
	return nil
}

// Tasks implements [cmdhook.Inner].
func (g inner) Tasks(server string) status.Tasks {
	if of := router.TasksOf(g.Gateway, server); of != nil {
		return of.TellTasks()
	}
	return status.Tasks{List: []status.Task{}}
}

// CancelTask implements [cmdhook.Inner].
func (g inner) CancelTask(ctx context.Context, server, key string) error {
	log, of := g.Audit(), router.TasksOf(g.Gateway, server)
	switch {
	case of == nil:
		return fmt.Errorf("server %q has no tasks that are held for clients of the other era", server)
	case log.Refuses():
		return errors.New("nothing was cancelled: the audit log can't be written, and is required")
	}
	task, err := of.CancelTask(ctx, key)
	if err != nil {
		return fmt.Errorf("server %q: %s", server, g.outer.secrets().String(err.Error()))
	}
	log.Write(audit.TaskCancelled(server, task.Tool, task.Principal, string(overview.Principal)))
	return nil
}

func (g *Gateway) restart(server string) (*audit.Log, error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	switch {
	case g.ended:
		return nil, errEnded
	case g.current.find(server) == nil:
		return nil, errors.New("it is not served")
	case g.current.common.audit.Refuses():
		return nil, errors.New("the audit log can't be written, and is required")
	}
	if _, err := g.reload(g.current.opts, server); err != nil {
		return nil, err
	}
	g.current.opts.Logger.Info("server restarted, as somebody at the admin page wanted", "upstream", server)
	return g.current.common.audit, nil
}

// review looks through the tools of a server, as they are for the principal admin.
func (g inner) review(ctx context.Context, server string) (*pin.Review, *audit.Log, error) {
	pins, log := g.outer.pinsOf(server)
	if pins == nil {
		return nil, nil, fmt.Errorf("the tools of server %q are not pinned; set pin: warn or pin: refuse", server)
	}
	r, err := pins.Review(func() error {
		params := json.RawMessage("{}")
		for range mostPages {
			result, err := g.Ask(ctx, server, spec.MethodToolsList, params)
			if err != nil {
				return fmt.Errorf("server %q did not list its tools: %w", server, err)
			}
			next := wire.Get(result, "nextCursor")
			if next == nil || wire.IsNull(next) {
				return nil
			}
			params = wire.AppendEdited(nil, []byte("{}"), wire.Edit{Name: "cursor", Value: next})
		}
		return fmt.Errorf("server %q lists its tools on over %d pages; look at them with mcpbridge pin", server, mostPages)
	})
	return r, log, err
}

// pinsOf returns what pins the tools of a server, nil for nothing, and the audit log.
func (g *Gateway) pinsOf(server string) (*pin.Pins, *audit.Log) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	p := g.current.find(server)
	if p == nil || g.current.opts.hooks.Listed != nil {
		return nil, nil
	}
	return p.access.Pins, g.current.common.audit
}

// ToolChanges implements [cmdhook.Inner].
func (g inner) ToolChanges(ctx context.Context, server string) ([]status.ToolChange, error) {
	r, _, err := g.review(ctx, server)
	if err != nil {
		return nil, err
	}
	changes, err := r.Changes()
	if err != nil {
		return nil, err
	}
	secrets := g.outer.secrets()
	out := []status.ToolChange{}
	for _, c := range changes[:min(len(changes), status.MaxToolChanges)] {
		out = append(out, status.ToolChange{Tool: c.Tool, Was: secrets.Bytes(c.Was), Is: secrets.Bytes(c.Is), New: !r.Knows(c.Tool), Digest: pin.Digest(c.Is)})
	}
	return out, nil
}

// secrets are those of the options.
func (g *Gateway) secrets() *redact.Redactor {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	return g.current.opts.hooks.Secrets
}

// AcceptTools implements [cmdhook.Inner].
func (g inner) AcceptTools(ctx context.Context, server string, tools []status.AcceptedTool) (int, error) {
	r, log, err := g.review(ctx, server)
	if err != nil {
		return 0, err
	}
	if log.Refuses() {
		return 0, errors.New("nothing was accepted: the audit log can't be written, and is required")
	}
	digests := make(map[string]string, len(tools))
	for _, t := range tools {
		digests[t.Tool] = t.Digest
	}
	accepted, err := r.Accept(ctx, digests)
	if err != nil {
		return 0, fmt.Errorf("nothing was accepted: %w", err)
	}
	for _, c := range accepted {
		line := audit.Pinned(server, mcp.Shorten(c.Tool), pin.Digest(c.Is), "is accepted at the admin page", false)
		line.Principal = string(overview.Principal)
		log.Write(line)
	}
	return len(accepted), nil
}
