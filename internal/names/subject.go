package names

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// about has the methods of requests about what may be renamed.
var about = map[string]policy.Kind{
	spec.MethodToolsCall: policy.Tool, spec.MethodPromptsGet: policy.Prompt, spec.MethodComplete: policy.Prompt,
}

// Called returns the own name of what a request of method is about, for logs and metrics; shown
// is what clients call it.
func (m *Map) Called(method, shown string) string {
	kind, ok := about[method]
	if m == nil || !ok || m.parts[kind] == nil {
		return shown
	}
	if own, renamed := m.parts[kind].own[shown]; renamed {
		return own
	}
	return shown
}

// Subject is [mcp.Subject] by the server's own name.
func (m *Map) Subject(method string, params []byte) string {
	return m.Called(method, mcp.Subject(method, params))
}

// Named returns what knows what a client's request is about, by the server's own name.
func (m *Map) Named(req *mcp.Request) trace.Named {
	if m == nil {
		return req
	}
	return &named{m, req}
}

type named struct {
	m   *Map
	req *mcp.Request
}

// Subject implements [trace.Named].
func (n *named) Subject() string { return n.m.Subject(n.req.Method, n.req.Params) }
