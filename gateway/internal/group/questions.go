package group

import (
	"context"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An attributed Caller tells the client which member asks, and which one logs.
type attributed struct {
	mcp.Caller
	server string
	silent bool     // its name is not put into questions
	tasks  *sealing // of the ids of tasks, for a client that holds some; else nil
}

// Notify implements [mcp.Caller]: the logger of a log message is the member's.
func (a *attributed) Notify(ctx context.Context, n mcp.Notification) error {
	if n.Method == spec.NotifyMessage {
		n.Params = owners.NameLogger(a.server, n.Params)
	}
	if a.tasks != nil {
		n.Params = a.tasks.tells(a.server, n.Params)
	}
	return a.Caller.Notify(ctx, n)
}

// RequestInput implements [mcp.Caller].
func (a *attributed) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	said := make([]mcp.InputRequest, len(qs))
	for i, q := range qs {
		q.Server = a.server
		if params := owners.NameQuestion(a.server, q.Method, q.Params); params != nil && !a.silent {
			q.Params = params
		}
		if a.tasks != nil {
			q.Params = a.tasks.tells(a.server, q.Params)
		}
		said[i] = q
	}
	return a.Caller.RequestInput(ctx, said)
}
