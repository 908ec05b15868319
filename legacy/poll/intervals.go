package poll

import (
	"encoding/json"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// Intervals say how often to look for changes that a server does not tell of,
// while somebody wants to hear of them. Zero means that the server's word is
// relied on.
type Intervals struct {
	Tools     time.Duration // the list of tools
	Prompts   time.Duration // the list of prompts
	Resources time.Duration // the list of resources
	// Updates is for each resource that somebody subscribed to. They are read one
	// after another, so that a server may be slower than this demands.
	Updates time.Duration
}

// Negative reports whether an interval is.
func (i Intervals) Negative() bool {
	return i.Tools < 0 || i.Prompts < 0 || i.Resources < 0 || i.Updates < 0
}

// of returns how often to look for changes of a kind.
func (i Intervals) of(k fanout.Kind) time.Duration {
	switch k {
	case fanout.ToolsListChanged:
		return i.Tools
	case fanout.PromptsListChanged:
		return i.Prompts
	case fanout.ResourcesListChanged:
		return i.Resources
	case fanout.ResourceUpdated:
		return i.Updates
	}
	return 0
}

// A list is what there is to fetch for changes of a kind, and where a server declares it.
type list struct{ capability, method, member string }

func listOf(k fanout.Kind) list {
	switch k {
	case fanout.ToolsListChanged:
		return list{"tools", spec.MethodToolsList, "tools"}
	case fanout.PromptsListChanged:
		return list{"prompts", spec.MethodPromptsList, "prompts"}
	}
	return list{"resources", spec.MethodResourcesList, "resources"}
}

// Kinds returns the kinds of change that are looked for at a server with such
// capabilities: those that have an interval, if the server has what is looked at.
func (i Intervals) Kinds(capabilities json.RawMessage) watch.Kinds {
	var out watch.Kinds
	for _, k := range []fanout.Kind{fanout.ToolsListChanged, fanout.PromptsListChanged, fanout.ResourcesListChanged, fanout.ResourceUpdated} {
		if i.of(k) > 0 && mcp.Declares(capabilities, listOf(k).capability) {
			out = out.With(k)
		}
	}
	return out
}

// Declare returns what clients are told of a server's capabilities, with the changes of
// some kinds, which are looked for.
func Declare(told json.RawMessage, polled watch.Kinds) json.RawMessage {
	add := func(k fanout.Kind, member string) {
		if !polled.Has(k) {
			return
		}
		name := listOf(k).capability
		value := wire.AppendEdited(nil, wire.Get(told, name), wire.Edit{Name: member, Value: []byte("true")})
		told = wire.AppendEdited(nil, told, wire.Edit{Name: name, Value: value})
	}
	add(fanout.ToolsListChanged, "listChanged")
	add(fanout.PromptsListChanged, "listChanged")
	add(fanout.ResourcesListChanged, "listChanged")
	add(fanout.ResourceUpdated, "subscribe")
	return told
}
