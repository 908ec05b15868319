package front

import (
	"net/http"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// checkMethod holds Mcp-Method against the body. h is nil where messages have no headers.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Validation.
func checkMethod(h http.Header, m *wire.Message) error {
	if h == nil {
		return nil
	}
	return checkHeader(h, spec.HeaderMethod, m.Method)
}

// checkName holds Mcp-Name against the body, and the body against what its method
// demands. Some clients send none with requests about tasks. h is nil where messages have
// no headers.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Validation; tasks extension
// 2026-07-28, Streamable HTTP: Routing Headers.
func checkName(h http.Header, m *wire.Message) error {
	member := spec.Named(m.Method)
	if member == "" {
		return nil
	}
	name := wire.Get(m.Params, member)
	if len(name) == 0 || name[0] != '"' {
		return mcp.Refuse(spec.CodeInvalidParams, "params.%s is missing or not a string", member)
	}
	if h == nil || spec.OnTask(m.Method) && len(h[spec.HeaderName]) == 0 {
		return nil
	}
	got, err := singleHeader(h, spec.HeaderName)
	if err != nil {
		return err
	}
	// Some SDKs send names outside ASCII as raw UTF-8, and compare them so.
	if value, ok := protocol.DecodeHeader(got); !ok || !wire.Says(name, value) {
		return mismatch(spec.HeaderName, got, wire.Unquote(name))
	}
	return nil
}

// unverified returns the headers of a request that only its server can judge: the
// parameters of a tool that nothing is known of, and what a method that nothing is known
// of is about.
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

// isForwardable reports whether a header with value can be sent on as it is, and says something.
func isForwardable(value string) bool {
	if !utf8.ValidString(value) {
		return false
	}
	if protocol.Marked(value) {
		_, ok := protocol.DecodeHeader(value)
		return ok
	}
	return protocol.PassesRaw(value)
}

// checkHeader wants exactly one header, and its value equal to want.
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
		return "", mcp.Refuse(spec.CodeHeaderMismatch, "header %s is there %d times, want it once", name, len(values))
	}
}

func mismatch(name, got, want string) error {
	return mcp.Refuse(spec.CodeHeaderMismatch, "header %s says %q, the body says %q", name, got, want)
}
