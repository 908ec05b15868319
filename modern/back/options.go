package back

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Options describe one modern server and how it is used.
type Options struct {
	// ClientInfo is for requests whose client gave none. If the settings hide
	// [spec.ExtensionTasks], no request about a task crosses.
	upstream.Options

	// Dial opens a connection of messages if there is no URL, for example a pipe. Each
	// call returns a new connection, which the Back closes. ctx bounds the opening, not
	// the connection. All clients share one connection, since the era has no sessions.
	Dial func(ctx context.Context) (transport.Conn, error)
	// Eager has Dial called for each request that needs a connection, also while it keeps
	// failing, since it starts nothing. Otherwise there are pauses, in which requests fail.
	Eager bool
	// IDs is the highest id of requests that were sent on a connection before Dial
	// returned it. The Back uses greater ones.
	IDs int64

	// Probed is the description that a probe got a moment ago, with the capabilities as
	// the server wrote them. Describe returns it until the server was reached or not. Nil
	// means none.
	Probed *mcp.Description
	// Peer says that the server is another replica of the gateway. Nil means that it is none.
	Peer *upstream.Peer
}

// fault returns the first fault in the options of this era, or "".
func (o *Options) fault() string {
	if (o.URL == "") == (o.Dial == nil) {
		return "want exactly one of URL and Dial"
	}
	return ""
}
