package front

import (
	"net/http"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// checkMethod compares Mcp-Method with the body. h is nil if messages have no headers.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Validation.
func checkMethod(h http.Header, m *wire.Message) error {
	if h == nil {
		return nil
	}
	return checkHeader(h, spec.HeaderMethod, m.Method)
}

// checkName compares Mcp-Name with the body, and checks that the body has the member that
// its method requires. Some clients send no Mcp-Name with requests about tasks. h is nil
// if messages have no headers.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Validation; tasks extension
// 2026-07-28, Streamable HTTP: Routing Headers.
func (f *Front) checkName(h http.Header, m *wire.Message) error {
	member := spec.Named(m.Method)
	if member == "" {
		return nil
	}
	name := m.Plain.Get(m.Params, member)
	if len(name) == 0 || name[0] != '"' {
		if spec.OnTask(m.Method) && f.opts.Upstream() == spec.Legacy {
			return nil // whether there are tasks at all comes first, which the Handler knows
		}
		return mcp.Refuse(spec.CodeInvalidParams, "params.%s is missing or not a string", member)
	}
	if h == nil {
		return nil
	}
	if spec.OnTask(m.Method) && len(h[spec.HeaderName]) == 0 {
		f.met(quirks.TaskName, m)
		return nil
	}
	got, err := singleHeader(h, spec.HeaderName)
	if err != nil {
		return err
	}
	// Some SDKs send and compare names outside ASCII as raw UTF-8.
	if value, ok := spec.DecodeHeader(got); !ok || !wire.Says(name, value) {
		return mismatch(spec.HeaderName, got, wire.Unquote(name))
	}
	if !spec.Marked(got) && !isASCII(got) {
		f.met(quirks.RawName, m)
	}
	return nil
}

// met says that the sender of m has a quirk.
func (f *Front) met(q quirks.Quirk, m *wire.Message) {
	f.opts.Quirks.Met(q, mcp.ClientName(wire.Get(m.Meta, spec.MetaClientInfo)))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unverified returns the headers of a request that only the server can check: the
// parameters of an unknown tool, and Mcp-Name of an unknown method.
func (f *Front) unverified(h http.Header, req *mcp.Request) map[string][]string {
	if spec.Defined(req.Method) || spec.OnTask(req.Method) {
		return f.unverifiedParams(h, req)
	}
	name := h[spec.HeaderName]
	if len(name) != 1 || !isForwardable(name[0]) {
		return nil
	}
	return map[string][]string{spec.HeaderName: name}
}

// isForwardable reports whether a header with value can be forwarded unchanged, and is not
// empty.
func isForwardable(value string) bool {
	if !utf8.ValidString(value) {
		return false
	}
	if spec.Marked(value) {
		_, ok := spec.DecodeHeader(value)
		return ok
	}
	return spec.PassesRaw(value)
}

// checkHeader requires exactly one header, with the value want.
func checkHeader(h http.Header, name, want string) error {
	got, err := singleHeader(h, name)
	if err == nil && got != want {
		err = mismatch(name, got, want)
	}
	return err
}

func singleHeader(h http.Header, name string) (string, error) {
	switch values := h[name]; len(values) {
	case 0:
		return "", mcp.Refuse(spec.CodeHeaderMismatch, "header %s is missing", name)
	case 1:
		return values[0], nil
	default:
		return "", mcp.Refuse(spec.CodeHeaderMismatch, "header %s appears %d times, want it once", name, len(values))
	}
}

func mismatch(name, got, want string) error {
	return mcp.Refuse(spec.CodeHeaderMismatch, "header %s is %q, and the body has %q", name, got, want)
}
