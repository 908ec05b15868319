package gateway

import (
	"cmp"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A cacheKey is what makes two requests the same request to the cache. The scope
// is part of it although only public results are kept: what a server shows may
// depend on its client's capabilities too, and no word in a configuration should
// be able to show one principal what was made for another.
type cacheKey struct {
	scope  string // of the profile: server, principal, capabilities
	method string
	params string // canonical, without what can't change the result
	uri    string // of resources/read
}

// keyOf returns the key of a request, or reports that its result is never kept:
// that of a retry depends on answers which are not part of the key.
//
// Spec: 2026-07-28, server/utilities/caching, Cache Key.
func keyOf(req *mcp.Request) (cacheKey, bool) {
	if len(req.Extra) > 0 || wire.Get(req.Params, "inputResponses") != nil || wire.Get(req.Params, "requestState") != nil {
		return cacheKey{}, false
	}
	meta := wire.Edit{Name: "_meta", Value: foreign(wire.Get(req.Params, "_meta"))}
	params := wire.AppendEdited(nil, req.Params, meta)
	key := cacheKey{scope: req.Profile.Scope, method: req.Method, params: string(wire.AppendCanonical(nil, params))}
	if req.Method == spec.MethodResourcesRead {
		key.uri, _ = wire.GetString(req.Params, "uri")
	}
	return key, true
}

// plainMeta are the keys of a request's _meta that say nothing about the result:
// those of the envelope, of which the profile holds what matters, and of tracing.
var plainMeta = []wire.Edit{
	{Name: spec.MetaProtocolVersion}, {Name: spec.MetaClientInfo}, {Name: spec.MetaClientCapabilities},
	{Name: spec.MetaLogLevel}, {Name: spec.MetaProgressToken},
	{Name: "traceparent"}, {Name: "tracestate"}, {Name: "baggage"},
}

// foreign returns meta without plainMeta, nil if nothing is left. What is left
// goes upstream, and the server may heed it.
func foreign(meta []byte) []byte {
	if out := wire.AppendEdited(nil, meta, plainMeta...); len(out) > len("{}") {
		return out
	}
	return nil
}

// affectedBy reports whether a change may have made the key's result another.
// An update is reported under the URI that somebody follows, which may be an
// ancestor of the one that changed, so that reads above and below it count.
func (k *cacheKey) affectedBy(ev fanout.Event) bool {
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

// within reports whether uri is at or a sub-resource of it, by path segment.
func within(uri, at string) bool {
	rest, ok := strings.CutPrefix(uri, at)
	return ok && (rest == "" || strings.HasSuffix(at, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

// size is what the key takes in memory, in bytes, roughly.
func (k *cacheKey) size() int { return len(k.params) + len(k.uri) }
