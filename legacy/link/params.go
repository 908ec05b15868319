package link

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Params converts the params of a modern request for a legacy server. It removes
// members that only modern servers understand, and replaces the progress token by token,
// or removes it if token is zero. All other members keep their bytes, for example
// keys of extensions, and traceparent unless x, which may be nil, has its own. It returns
// nil if params are nil and none are needed. It uses space for the result if that is large
// enough.
//
// Spec: 2026-07-28, basic/index, _meta.
func Params(space []byte, params json.RawMessage, token int64, x *trace.Exchange) json.RawMessage {
	if params == nil && token == 0 && !x.HasContext() {
		return nil
	}
	hasMeta := false
	out := append(slices.Grow(space, len(params)+48), '{')
	for k, v := range wire.Members(params) {
		switch {
		case k.Is("_meta"):
			hasMeta = true
			out = appendMeta(out, v, token, x)
		case k.Is("inputResponses"), k.Is("requestState"), k.Is("task"): // the gateway creates tasks of 2025-11-25 itself
		default:
			out = append(append(append(append(out, k...), ':'), v...), ',')
		}
	}
	if !hasMeta && (token != 0 || x.HasContext()) {
		out = appendMeta(out, nil, token, x)
	}
	if last := len(out) - 1; out[last] == ',' {
		out = out[:last]
	}
	return append(out, '}')
}

// appendMeta appends the member with what is left of _meta, and a comma. It appends nothing
// if nothing of the client is left.
func appendMeta(dst, meta []byte, token int64, x *trace.Exchange) []byte {
	out := append(dst, `"_meta":`...)
	if meta != nil && !wire.IsObject(meta) {
		return append(append(out, meta...), ',') // the server may refuse it
	}
	progress := wire.Edit{Name: spec.MetaProgressToken}
	if token != 0 {
		progress.Value = strconv.AppendInt(nil, token, 10)
	}
	before := len(out)
	out = x.AppendMeta(out, meta, progress,
		wire.Edit{Name: spec.MetaProtocolVersion},
		wire.Edit{Name: spec.MetaClientInfo},
		wire.Edit{Name: spec.MetaClientCapabilities},
		wire.Edit{Name: spec.MetaLogLevel})
	if string(out[before:]) == "{}" && !wire.IsEmptyObject(meta) {
		return dst
	}
	return append(out, ',')
}
