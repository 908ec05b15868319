package trace

import "github.com/mcpbridge/mcpbridge/internal/wire"

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

// FromMeta returns the context in _meta.
func FromMeta(meta []byte) (c Context) {
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

// FromHeader returns the context in an HTTP header with canonical names.
func FromHeader(h map[string][]string) Context {
	return Context{first(h["Traceparent"]), joined(h["Tracestate"]), joined(h["Baggage"])}
}

// first returns a value that must be alone.
func first(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// joined returns the values of a header that is a list.
func joined(values []string) (out string) {
	for i, v := range values {
		if i > 0 {
			out += ","
		}
		out += v
	}
	return out
}

// HasContext reports whether there is a context to be sent.
func (x *Exchange) HasContext() bool { return x != nil && !x.Context.IsZero() }

// Edits appends what replaces the client's context in _meta by that of the exchange: nothing
// if x has none.
func (x *Exchange) Edits(to []wire.Edit) []wire.Edit {
	if !x.HasContext() {
		return to
	}
	return append(to,
		wire.Edit{Name: Traceparent, Value: quoted(x.Context.Traceparent)},
		wire.Edit{Name: Tracestate, Value: quoted(x.Context.Tracestate)},
		wire.Edit{Name: Baggage, Value: quoted(x.Context.Baggage)})
}

// quoted returns nil, which removes a member, for nothing.
func quoted(s string) []byte {
	if s == "" {
		return nil
	}
	return wire.Quote(s)
}

// SetHeader sets the context of the exchange in an HTTP header. It reports false, and
// changes nothing, if x has none.
func (x *Exchange) SetHeader(h map[string][]string) bool {
	if !x.HasContext() {
		return false
	}
	set(h, "Traceparent", x.Context.Traceparent)
	set(h, "Tracestate", x.Context.Tracestate)
	set(h, "Baggage", x.Context.Baggage)
	return true
}

func set(h map[string][]string, name, value string) {
	if value != "" {
		h[name] = []string{value}
	}
}
