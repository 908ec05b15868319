package front

import (
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// checkParams compares the parameter headers of a tools/call with its arguments.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Behavior for Custom Headers.
func (f *Front) checkParams(h http.Header, req *mcp.Request) error {
	if req.Method != spec.MethodToolsCall || f.schemas.Empty() {
		return nil
	}
	name, _ := wire.GetString(req.Params, "name")
	for _, m := range f.schemas.Mirrors(req.Profile.Scope, name) {
		if err := checkMirror(m, h, wire.Get(req.Params, "arguments")); err != nil {
			return err
		}
	}
	return nil
}

// ToolsChanged forgets which parameters headers mirror, since the tools of a scope have changed. Calls are
// not held against an earlier list, which a client that has listed them through another replica has left
// behind.
func (f *Front) ToolsChanged(scope string) { f.schemas.Forget(scope) }

// unverifiedParams returns the parameter headers of a call to an unknown tool.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Behavior for Custom Headers.
func (f *Front) unverifiedParams(h http.Header, req *mcp.Request) (headers map[string][]string) {
	if req.Method != spec.MethodToolsCall {
		return nil
	}
	for name, values := range h {
		if !strings.HasPrefix(name, spec.HeaderParamPrefix) {
			continue
		}
		if tool, _ := wire.GetString(req.Params, "name"); f.schemas.Knows(req.Profile.Scope, tool) {
			return nil // the back computes them
		}
		if headers == nil {
			headers = make(map[string][]string)
		}
		headers[name] = values
	}
	return headers
}

// checkMirror compares a parameter header with value, the arguments.
func checkMirror(m protocol.Mirror, h http.Header, value []byte) error {
	for _, name := range m.Path {
		if err := wire.CheckUnique(value); err != nil {
			return mcp.Refuse(spec.CodeInvalidRequest, "arguments: %v", err)
		}
		value = wire.Get(value, name)
	}
	if len(value) == 0 || wire.IsNull(value) {
		if len(h[m.Header]) > 0 {
			return mcp.Refuse(spec.CodeHeaderMismatch, "header %s is present, and its argument is not", m.Header)
		}
		return nil
	}
	got, err := singleHeader(h, m.Header)
	if err != nil {
		return err
	}
	text, ok := spec.DecodeHeader(got)
	if !ok || !sameValue(text, value) {
		return mismatch(m.Header, got, protocol.PlainText(value))
	}
	return nil
}

// sameValue compares the value of a header with an argument: numbers as numbers.
func sameValue(text string, value []byte) bool {
	if protocol.PlainText(value) == text {
		return true
	}
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	return sameNumber(text, string(value))
}

func sameNumber(a, b string) bool {
	x, okX := protocol.ParseNumber(a)
	y, okY := protocol.ParseNumber(b)
	return okX && okY && x.Cmp(y) == 0
}
