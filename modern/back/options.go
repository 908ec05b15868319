package back

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Options describe one upstream server of the modern era and how to treat it.
type Options struct {
	// ClientInfo is for requests whose client gave none. With [spec.ExtensionTasks] among
	// HideExtensions no request about a task crosses.
	upstream.Options

	// Dial opens a connection of messages, if there is no URL: a child process started, a
	// pipe. Each call gives a fresh one, which the Back closes. ctx bounds the opening,
	// not the connection. One connection serves everybody, since the era has no
	// sessions.
	Dial func(ctx context.Context) (transport.Conn, error)
	// IDs is the highest id of a request that a connection was sent before Dial returned
	// it: those of the Back's own are greater.
	IDs int64

	// LogLevel is what requests ask for whose client did not; empty for no
	// messages.
	LogLevel spec.LogLevel
	// Probed is what a probe was answered a moment ago, its capabilities as the
	// server wrote them: Describe tells it until the server was reached, or not. Nil
	// for none.
	Probed *mcp.Description
}

// fault returns what is wrong with what this era alone has, "" for nothing.
func (o *Options) fault() string {
	if (o.URL == "") == (o.Dial == nil) {
		return "want exactly one of URL and Dial"
	}
	if o.LogLevel != "" && !o.LogLevel.Valid() {
		return fmt.Sprintf("unknown LogLevel %q", o.LogLevel)
	}
	return ""
}
