package back

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// upstreamParams returns the params of a modern request as a legacy server gets
// them: without what only modern servers understand, the progress token replaced
// by token, or taken away if token is zero. All other members keep their bytes,
// traceparent and the keys of extensions among them. It returns nil where there
// were none and none are needed. The result is in space if that has room.
//
// Spec: 2026-07-28, basic/index, _meta.
func upstreamParams(space []byte, params json.RawMessage, token int64) json.RawMessage {
	if params == nil && token == 0 {
		return nil
	}
	hasMeta := false
	out := append(slices.Grow(space, len(params)+48), '{')
	for k, v := range wire.Members(params) {
		switch {
		case k.Is("_meta"):
			hasMeta = true
			out = appendMeta(out, v, token)
		case k.Is("inputResponses"), k.Is("requestState"), k.Is("task"): // 2025's tasks are the gateway's to ask for
		default:
			out = append(append(append(append(out, k...), ':'), v...), ',')
		}
	}
	if !hasMeta && token != 0 {
		out = appendMeta(out, nil, token)
	}
	if last := len(out) - 1; out[last] == ',' {
		out = out[:last]
	}
	return append(out, '}')
}

// appendMeta appends the member with what is left of _meta, and a comma; nothing if
// nothing is left that the client itself put there.
func appendMeta(dst, meta []byte, token int64) []byte {
	out := append(dst, `"_meta":`...)
	if meta != nil && !wire.IsObject(meta) {
		return append(append(out, meta...), ',') // not ours to judge
	}
	progress := wire.Edit{Name: spec.MetaProgressToken}
	if token != 0 {
		progress.Value = strconv.AppendInt(nil, token, 10)
	}
	before := len(out)
	out = wire.AppendEdited(out, meta, progress,
		wire.Edit{Name: spec.MetaProtocolVersion},
		wire.Edit{Name: spec.MetaClientInfo},
		wire.Edit{Name: spec.MetaClientCapabilities},
		wire.Edit{Name: spec.MetaLogLevel})
	if string(out[before:]) == "{}" && !emptyObject(meta) {
		return dst
	}
	return append(out, ',')
}

// emptyObject reports whether text is an object without members.
func emptyObject(text []byte) bool {
	for range wire.Members(text) {
		return false
	}
	return wire.IsObject(text)
}
