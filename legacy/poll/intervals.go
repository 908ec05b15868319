package poll

import (
	"encoding/json"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// Intervals are the pauses between polls for changes that a server does not report, while
// they have subscribers. Zero means no polls. Resources with subscribers are read one after
// another, so the interval of updates may be longer for a slow server.
type Intervals settings.Synthesize

// Negative reports whether an interval is negative.
func (i Intervals) Negative() bool {
	return i.Tools < 0 || i.Prompts < 0 || i.Resources < 0 || i.Updates < 0
}

// of returns the interval for changes of a kind.
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

// A list says what is fetched for changes of a kind, and which capability declares it.
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

// Kinds returns the kinds of changes to poll for at a server with these capabilities: those
// with an interval, if the server has the list or the resources.
func (i Intervals) Kinds(capabilities json.RawMessage) watch.Kinds {
	var out watch.Kinds
	for _, k := range []fanout.Kind{fanout.ToolsListChanged, fanout.PromptsListChanged, fanout.ResourcesListChanged, fanout.ResourceUpdated} {
		if i.of(k) > 0 && mcp.Declares(capabilities, listOf(k).capability) {
			out = out.With(k)
		}
	}
	return out
}

// Declare returns a server's capabilities for clients: with the changes that are polled
// for.
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
