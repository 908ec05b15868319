package back

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// Synthesize says how often to look for changes that a server does not tell of,
// while somebody wants to hear of them. Zero means that the server's word is
// relied on.
type Synthesize struct {
	Tools     time.Duration // the list of tools
	Prompts   time.Duration // the list of prompts
	Resources time.Duration // the list of resources
	// Updates is for each resource that somebody subscribed to. They are read one
	// after another, so that a server may be slower than this demands.
	Updates time.Duration
}

func (o Synthesize) negative() bool {
	return o.Tools < 0 || o.Prompts < 0 || o.Resources < 0 || o.Updates < 0
}

// every returns how often to look for changes of a kind.
func (o Synthesize) every(k fanout.Kind) time.Duration {
	switch k {
	case fanout.ToolsListChanged:
		return o.Tools
	case fanout.PromptsListChanged:
		return o.Prompts
	case fanout.ResourcesListChanged:
		return o.Resources
	case fanout.ResourceUpdated:
		return o.Updates
	}
	return 0
}

// polledList is what there is to look at for changes of a list.
type polledList struct{ group, method, member string }

func polledListOf(k fanout.Kind) polledList {
	switch k {
	case fanout.ToolsListChanged:
		return polledList{"tools", spec.MethodToolsList, "tools"}
	case fanout.PromptsListChanged:
		return polledList{"prompts", spec.MethodPromptsList, "prompts"}
	}
	return polledList{"resources", spec.MethodResourcesList, "resources"}
}

// synthesizes returns the kinds of change that the gateway looks for on the session.
func (s *session) synthesizes() watch.Kinds { return s.opts.Synthesize.kinds(s.caps.Raw) }

// kinds returns the kinds of change that the gateway looks for: it must be told to, and
// the server must have what is looked at.
func (o Synthesize) kinds(capabilities json.RawMessage) watch.Kinds {
	var out watch.Kinds
	for _, k := range []fanout.Kind{fanout.ToolsListChanged, fanout.PromptsListChanged, fanout.ResourcesListChanged, fanout.ResourceUpdated} {
		if o.every(k) > 0 && mcp.Declares(capabilities, polledListOf(k).group) {
			out = out.With(k)
		}
	}
	return out
}

// declared returns what clients are told of a server's capabilities, with what the
// gateway looks after by itself.
func (o Synthesize) declared(capabilities, told json.RawMessage) json.RawMessage {
	all := o.kinds(capabilities)
	add := func(k fanout.Kind, member string) {
		if !all.Has(k) {
			return
		}
		group := polledListOf(k).group
		value := wire.AppendEdited(nil, wire.Get(told, group), wire.Edit{Name: member, Value: []byte("true")})
		told = wire.AppendEdited(nil, told, wire.Edit{Name: group, Value: value})
	}
	add(fanout.ToolsListChanged, "listChanged")
	add(fanout.PromptsListChanged, "listChanged")
	add(fanout.ResourcesListChanged, "listChanged")
	add(fanout.ResourceUpdated, "subscribe")
	return told
}

// digest fetches a list, all its pages, or a resource, and returns a digest of it.
// Members in another order, and what is said about the answer, make no change.
func (s *session) digest(ctx context.Context, key pollKey) (sum [sha256.Size]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeouts.Request)
	defer cancel()
	h := sha256.New()
	if key.kind == fanout.ResourceUpdated {
		result, err := s.Request(ctx, spec.MethodResourcesRead, uriParams(key.uri))
		if err != nil {
			return sum, err
		}
		h.Write(wire.AppendCanonical(nil, wire.Get(result, "contents")))
		return [sha256.Size]byte(h.Sum(nil)), nil
	}
	list := polledListOf(key.kind)
	for page, err := range upstream.Pages(ctx, list.method, s.Request) {
		if err != nil {
			return sum, err
		}
		for item := range wire.Elements(wire.Get(page, list.member)) {
			h.Write(wire.AppendCanonical(nil, item))
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
