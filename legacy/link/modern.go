package link

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ModernError converts a legacy server's error to the modern one with the same meaning.
// declared says whether the server declared the method's capability.
//
// Spec: 2026-07-28, basic/index, Error Codes; server/resources, Error Handling.
func ModernError(req *mcp.Request, e *wire.Error, declared bool) error {
	switch {
	case e.Code == spec.CodeResourceNotFound:
		return &wire.Error{Code: spec.CodeInvalidParams, Message: e.Message, Data: mcp.WithURI(e.Data, wire.Get(req.Params, "uri"))}
	case spec.Reserved(e.Code):
		return &wire.Error{Code: spec.CodeInternal, Message: e.Message, Data: wrapCode(e)}
	case e.Code == spec.CodeMethodNotFound && !declared:
		return &mcp.Refusal{Err: e}
	}
	return e
}

// wrapCode returns data with the code and data of an error whose code has another meaning
// for modern clients.
func wrapCode(e *wire.Error) []byte {
	code := strconv.AppendInt(nil, e.Code, 10)
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "code", Value: code}, wire.Edit{Name: "data", Value: e.Data})
}

// ForeignMeta returns a copy of meta without the keys of the envelope, or nil if nothing
// is left.
func ForeignMeta(meta json.RawMessage) json.RawMessage {
	if len(meta) == 0 || !wire.IsObject(meta) {
		return nil
	}
	out := wire.AppendEdited(make([]byte, 0, len(meta)), meta, envelopeMeta...)
	if bytes.Equal(out, []byte("{}")) {
		return nil
	}
	return out
}

// envelopeMeta are the keys of _meta that belong to the protocol's envelope. If a legacy
// server sends them at all, subscribers must not get them.
var envelopeMeta = []wire.Edit{
	{Name: spec.MetaProtocolVersion},
	{Name: spec.MetaClientInfo},
	{Name: spec.MetaClientCapabilities},
	{Name: spec.MetaLogLevel},
	{Name: spec.MetaSubscriptionID},
	{Name: spec.MetaServerInfo},
	{Name: spec.MetaProgressToken},
}
