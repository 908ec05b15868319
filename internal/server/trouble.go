package server

import (
	"context"
	"errors"
	"net"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// Trouble says in a few words what is wrong with a server of which no era was found. It
// follows the server's name.
func (s *Server) Trouble(v *mcp.Verdict) string {
	o := &s.opts
	var page *transport.KindError
	switch {
	case o.isCommand():
		return commandTrouble(v)
	case v.Status != 0:
		return statusTrouble(v.Status)
	case errors.As(v.Cause, &page):
		return "is not an MCP server"
	case errors.Is(v.Cause, context.DeadlineExceeded):
		return "does not answer"
	case transport.Advice(v.Cause) != "", isDial(v.Cause):
		return "can't be reached"
	case v.Inconclusive:
		return "hangs up"
	}
	return "is not an MCP server"
}

func commandTrouble(v *mcp.Verdict) string {
	var exit *transport.ExitError
	switch {
	case transport.NotStarted(v.Cause):
		return "can't start"
	case v.Starting, errors.Is(v.Cause, context.DeadlineExceeded):
		return "does not answer"
	case errors.As(v.Cause, &exit):
		return "does not keep running"
	}
	return "is not an MCP server"
}

func isDial(err error) bool {
	var e *net.OpError
	return errors.As(err, &e) && e.Op == "dial"
}

func statusTrouble(status int) string {
	switch {
	case status == 401, status == 403:
		return "wants credentials"
	case status == 407:
		return "is behind a proxy that wants credentials"
	case status == 429:
		return "is busy"
	case status >= 500:
		return "answers with errors"
	case status >= 300 && status <= 399:
		return "leads to another URL"
	}
	return "is not an MCP server"
}
