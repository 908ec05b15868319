package back

import (
	"encoding/json"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/poll"
)

// declaredTo returns the client's capabilities for the server: those that the client
// declared, without those that are not forwarded. roots get listChanged, since the Back
// tells the server when it learns of other roots. They are added for a client without
// roots if roots are configured.
func declaredTo(capabilities json.RawMessage, opts *Options) json.RawMessage {
	if !mcp.Declares(capabilities, "roots") && len(opts.Settings.Roots) == 0 {
		return crossing(capabilities, opts.Settings.Hidden())
	}
	return crossing(capabilities, opts.Settings.Hidden(), wire.Edit{Name: "roots", Value: []byte(`{"listChanged":true}`)})
}

// crossing is [mcp.WithoutTasks], and also removes the tasks extension, which no legacy
// server has.
func crossing(capabilities json.RawMessage, hide []string, more ...wire.Edit) json.RawMessage {
	return mcp.WithoutTasks(capabilities, append(slices.Clone(hide), spec.ExtensionTasks), more...)
}

// describe returns the description of the server for modern clients.
//
// Spec: 2026-07-28, server/discover.
func (n *negotiated) describe(opts *Options) *mcp.Description {
	capabilities := crossing(n.caps.Raw, opts.Settings.Hidden())
	if n.tellsTasks(opts) {
		capabilities = mcp.WithTasks(capabilities)
	}
	return &mcp.Description{
		Capabilities: poll.Declare(capabilities, opts.polls().Kinds(n.caps.Raw)),
		ServerInfo:   n.serverInfo,
		Instructions: n.instructions,
		Cache:        opts.hint(spec.MethodDiscover),
	}
}
