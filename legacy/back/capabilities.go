package back

import (
	"encoding/json"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/poll"
)

// declaredTo returns what a server is told that its client can do: what the client
// declared, without what does not cross. roots get listChanged, since the Back
// tells a server when it learns more of them, and are declared for a client that
// has none if the config has some.
func declaredTo(capabilities json.RawMessage, opts *Options) json.RawMessage {
	edits := append(hiding(capabilities, opts.HideExtensions), wire.Edit{Name: "tasks"})
	if mcp.Declares(capabilities, "roots") || opts.Roots != nil {
		edits = append(edits, wire.Edit{Name: "roots", Value: []byte(`{"listChanged":true}`)})
	}
	return wire.AppendEdited(nil, capabilities, edits...)
}

// describable returns a server's capabilities as modern clients are told of
// them: 2025's tasks, which are not the extension of that name, and what the
// config hides are left out; nothing is added.
func describable(capabilities json.RawMessage, hide []string) json.RawMessage {
	return wire.AppendEdited(nil, capabilities, append(hiding(capabilities, hide), wire.Edit{Name: "tasks"})...)
}

// hiding returns the edits that take out of capabilities what is hidden, and the tasks
// extension, which no legacy server has.
func hiding(capabilities json.RawMessage, hide []string) []wire.Edit {
	return mcp.Hiding(capabilities, append(slices.Clone(hide), spec.ExtensionTasks))
}

// describe is what a modern client is told of the server.
//
// Spec: 2026-07-28, server/discover.
func (n *negotiated) describe(opts *Options) *mcp.Description {
	return &mcp.Description{
		Capabilities: poll.Declare(describable(n.caps.Raw, opts.HideExtensions), opts.Synthesize.Kinds(n.caps.Raw)),
		ServerInfo:   n.serverInfo,
		Instructions: n.instructions,
		Cache:        opts.Cache[spec.MethodDiscover],
	}
}
