package mcp

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// OutcomeName sorts how a request ended: "ok", "tool_error" if a tool said that it failed,
// "cancelled", "refused" by the gateway, "error" from the upstream's handler, or "failed"
// on the way.
func OutcomeName(ctx context.Context, err error) string {
	if err == nil {
		return "ok" // most requests get here, and what follows is on the heap
	}
	switch {
	case errors.Is(err, ErrToolFailed):
		return "tool_error"
	case ctx.Err() != nil, errors.Is(err, ErrCancelled):
		return "cancelled"
	case errors.As(err, new(*Refusal)):
		return "refused"
	case errors.As(err, new(*wire.Error)):
		return "error"
	}
	return "failed"
}
