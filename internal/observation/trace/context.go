package trace

import (
	"bytes"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The names of the parts of a Context in _meta and, with other case, in HTTP headers.
//
// Spec: W3C Trace Context; W3C Baggage; 2026-07-28, basic/index, _meta.
const (
	Traceparent = "traceparent"
	Tracestate  = "tracestate"
	Baggage     = "baggage"
)

// A Context is the context of a trace, as messages carry it.
type Context struct {
	Traceparent, Tracestate, Baggage string
}

// IsZero reports whether there is none.
func (c Context) IsZero() bool { return c == Context{} }

// TraceID returns the id of the trace; empty if there is none, or if it can't be read.
//
// Spec: W3C Trace Context, traceparent header field values.
func (c Context) TraceID() string {
	const begin, end = len("00-"), len("00-") + 32
	t := c.Traceparent
	if len(t) < len("00-00000000000000000000000000000000-0000000000000000-00") || t[begin-1] != '-' || t[end] != '-' {
		return ""
	}
	id := t[begin:end]
	if strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

// FromMeta returns the context in _meta.
func FromMeta(meta []byte) (c Context) {
	if !mayHaveContext(meta) {
		return c
	}
	for k, v := range wire.Members(meta) {
		switch {
		case k.Is(Traceparent):
			c.Traceparent = wire.Unquote(v)
		case k.Is(Tracestate):
			c.Tracestate = wire.Unquote(v)
		case k.Is(Baggage):
			c.Baggage = wire.Unquote(v)
		}
	}
	return c
}

// mayHaveContext reports whether it is worth while to read _meta: most of it has none, and this
// is asked of each request.
func mayHaveContext(meta []byte) bool {
	return bytes.Contains(meta, []byte("trace")) || bytes.Contains(meta, []byte(Baggage)) || bytes.IndexByte(meta, '\\') >= 0
}

// FromHeader returns the context in an HTTP header with canonical names.
func FromHeader(h map[string][]string) Context {
	return Context{first(h["Traceparent"]), strings.Join(h["Tracestate"], ","), strings.Join(h["Baggage"], ",")}
}

// first returns a value that must be alone.
func first(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// HasContext reports whether there is a context to be sent.
func (x *Exchange) HasContext() bool { return x != nil && !x.Context.IsZero() }

// AppendMeta appends _meta with edits applied, as [wire.AppendEdited] does, and with the
// context of the exchange in place of the client's, if x has one.
func (x *Exchange) AppendMeta(dst, meta []byte, edits ...wire.Edit) []byte {
	if !x.HasContext() {
		return wire.AppendEdited(dst, meta, edits...)
	}
	var few [8]wire.Edit
	dst = wire.AppendEdited(dst, meta, append(append(few[:0], edits...), parts[:]...)...)
	dst = dst[:len(dst)-1] // the bracket
	dst = appendPart(dst, Traceparent, x.Context.Traceparent)
	dst = appendPart(dst, Tracestate, x.Context.Tracestate)
	dst = appendPart(dst, Baggage, x.Context.Baggage)
	return append(dst, '}')
}

// parts are edits that remove a context.
var parts = [...]wire.Edit{{Name: Traceparent}, {Name: Tracestate}, {Name: Baggage}}

// appendPart appends a member to an object without its last bracket, unless text is empty.
func appendPart(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":`...)
	return wire.AppendString(dst, text)
}
