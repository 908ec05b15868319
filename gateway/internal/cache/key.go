package cache

import (
	"cmp"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A key identifies a request: two requests with the same key get the same result. It
// includes the scope although only public results are cached, because a result may depend
// on the client's capabilities, and because one principal must not get a result of
// another, whatever the configuration.
type key struct {
	scope  string // of the profile: server, principal, capabilities
	method string
	params string // canonical, without members that can't change the result
	uri    string // of resources/read
}

// keyOf returns the key of a request, or false if its result is never cached: the result
// of a retry depends on responses, which are not part of the key.
//
// Spec: 2026-07-28, server/utilities/caching, Cache Key.
func keyOf(req *mcp.Request) (key, bool) {
	if len(req.Extra) > 0 || wire.Get(req.Params, "inputResponses") != nil || wire.Get(req.Params, "requestState") != nil {
		return key{}, false
	}
	meta := wire.Edit{Name: "_meta", Value: significantMeta(wire.Get(req.Params, "_meta"))}
	params := wire.AppendEdited(nil, req.Params, meta)
	k := key{scope: req.Profile.Scope, method: req.Method, params: string(wire.AppendCanonical(nil, params))}
	if req.Method == spec.MethodResourcesRead {
		k.uri, _ = wire.GetString(req.Params, "uri")
	}
	return k, true
}

// withoutPlain removes the keys of a request's _meta that can't change its result: those
// of the envelope, whose relevant part is in the profile, and those of tracing.
var withoutPlain = []wire.Edit{
	{Name: spec.MetaProtocolVersion}, {Name: spec.MetaClientInfo}, {Name: spec.MetaClientCapabilities},
	{Name: spec.MetaLogLevel}, {Name: spec.MetaProgressToken},
	{Name: "traceparent"}, {Name: "tracestate"}, {Name: "baggage"},
}

// significantMeta returns the part of _meta that is forwarded and may change the result,
// nil if there is none.
func significantMeta(meta []byte) []byte {
	if out := wire.AppendEdited(nil, meta, withoutPlain...); len(out) > len("{}") {
		return out
	}
	return nil
}

// affectedBy reports whether a change may have changed the result of the key. An update is
// reported for a subscribed URI, which may be an ancestor of the one that changed, so it
// affects reads above and below that URI.
func (k *key) affectedBy(ev fanout.Event) bool {
	switch ev.Topic.Kind {
	case fanout.ToolsListChanged:
		return k.method == spec.MethodToolsList
	case fanout.PromptsListChanged:
		return k.method == spec.MethodPromptsList
	case fanout.ResourcesListChanged:
		return k.method == spec.MethodResourcesList || k.method == spec.MethodResourcesTemplates || k.method == spec.MethodResourcesRead
	case fanout.ResourceUpdated:
		at := cmp.Or(ev.URI, ev.Topic.URI)
		return k.method == spec.MethodResourcesRead && (within(k.uri, at) || within(at, k.uri))
	}
	return true
}

// within reports whether uri equals at or is a sub-resource of it, by path segment.
func within(uri, at string) bool {
	rest, ok := strings.CutPrefix(uri, at)
	return ok && (rest == "" || strings.HasSuffix(at, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

// size returns the approximate memory of the key, in bytes.
func (k *key) size() int { return len(k.params) + len(k.uri) }
