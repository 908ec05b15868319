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
	var few [256]byte // most have little else than what is taken away
	meta := wire.Edit{Name: "_meta", Value: upstreamMeta(few[:0], wire.Get(params, "_meta"), token)}
	if params == nil && meta.Value == nil {
		return nil
	}
	return wire.AppendEdited(slices.Grow(space, len(params)+48), params, meta,
		wire.Edit{Name: "inputResponses"},
		wire.Edit{Name: "requestState"},
		wire.Edit{Name: "task"}) // 2025's tasks are the gateway's to ask for
}

// upstreamMeta returns what is left of _meta, in space if that has room; nil if
// nothing is left that the client itself put there.
func upstreamMeta(space, meta []byte, token int64) []byte {
	if meta != nil && !wire.IsObject(meta) {
		return meta // not ours to judge
	}
	progress := wire.Edit{Name: spec.MetaProgressToken}
	if token != 0 {
		progress.Value = strconv.AppendInt(nil, token, 10)
	}
	if meta == nil && token == 0 {
		return nil
	}
	out := wire.AppendEdited(space, meta, progress,
		wire.Edit{Name: spec.MetaProtocolVersion},
		wire.Edit{Name: spec.MetaClientInfo},
		wire.Edit{Name: spec.MetaClientCapabilities},
		wire.Edit{Name: spec.MetaLogLevel})
	if string(out) == "{}" && !emptyObject(meta) {
		return nil
	}
	return out
}

// emptyObject reports whether text is an object without members.
func emptyObject(text []byte) bool {
	for range wire.Members(text) {
		return false
	}
	return wire.IsObject(text)
}
