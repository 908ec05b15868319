package protocol

import (
	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AppendFields appends the fields of a request's header that are its own: the revision, and those that
// mirror the body. rawName sends a name outside ASCII without encoding it.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Request Metadata.
func AppendFields(dst []http1.Field, revision spec.Revision, method string, params []byte, mirrors []Mirror, rawName bool) []http1.Field {
	dst = append(dst, http1.Field{Name: spec.HeaderProtocolVersion, Value: string(revision)}, http1.Field{Name: spec.HeaderMethod, Value: spec.EncodeHeader(method)})
	if name, ok := NameOf(method, params); ok {
		if !rawName || !spec.PassesRaw(name) {
			name = spec.EncodeHeader(name)
		}
		dst = append(dst, http1.Field{Name: spec.HeaderName, Value: name})
	}
	for _, m := range mirrors {
		if value, ok := mirrored(m, wire.Get(params, "arguments")); ok {
			dst = append(dst, http1.Field{Name: m.Header, Value: spec.EncodeHeader(value)})
		}
	}
	return dst
}

// NameOf returns the value of Mcp-Name, and whether requests of the method have one.
func NameOf(method string, params []byte) (string, bool) {
	member := spec.Named(method)
	if member == "" {
		return "", false
	}
	return wire.GetString(params, member)
}

// maxSafe is the largest absolute value of an integer that a header may mirror.
const maxSafe = 1<<53 - 1

// mirrored returns the value of a parameter in the arguments of a call, and whether a
// header has to mirror it.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
func mirrored(m Mirror, arguments []byte) (string, bool) {
	v := arguments
	for _, name := range m.Path {
		v = wire.Get(v, name)
	}
	if len(v) == 0 {
		return "", false
	}
	switch v[0] {
	case '"':
		return wire.Unquote(v), true
	case 't', 'f':
		return string(v), true
	case 'n', '{', '[':
		return "", false
	}
	return decimal(string(v))
}

// decimal returns a JSON number as decimal digits if it is an integer in the safe range:
// 42.0 is 42.
func decimal(s string) (string, bool) {
	n, ok := ParseNumber(s)
	if !ok || !n.IsInt() {
		return "", false
	}
	i := n.Num()
	if !i.IsInt64() || i.Int64() > maxSafe || i.Int64() < -maxSafe {
		return "", false
	}
	return i.String(), true
}
