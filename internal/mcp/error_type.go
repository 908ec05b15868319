package mcp

import (
	"context"
	"errors"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrorType sorts an error for traces and metrics: its JSON-RPC code, "tool_error" if a tool
// said that it failed, "cancelled", "timeout", or "_OTHER". It is empty for nil.
//
// Spec: OpenTelemetry semantic conventions for MCP, error.type.
func ErrorType(err error) string {
	if err == nil {
		return ""
	}
	var we *wire.Error
	switch {
	case errors.Is(err, ErrToolFailed):
		return "tool_error"
	case errors.As(err, &we):
		return strconv.FormatInt(we.Code, 10)
	case errors.Is(err, ErrCancelled), errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "_OTHER"
}
