package mcp

import (
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxSubject bounds the name of a tool, prompt or resource in logs and traces, in bytes.
const maxSubject = 256

// Subject implements [trace.Named].
func (r *Request) Subject() string { return Subject(r.Method, r.Params) }

// Subject returns the tool, prompt or resource of a request, or "".
func Subject(method string, params []byte) string {
	member := spec.Named(method)
	switch method {
	case spec.MethodSubscribe, spec.MethodUnsubscribe:
		member = "uri"
	case spec.MethodComplete:
		ref := wire.Get(params, "ref")
		if name, ok := wire.GetString(ref, "name"); ok {
			return Truncate(name, maxSubject)
		}
		params, member = ref, "uri"
	case spec.MethodSetLevel:
		member = "level"
	case spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel, spec.MethodTaskResult:
		return "" // a task's id grants access to it, so it is not logged
	}
	if member == "" {
		return ""
	}
	name, _ := wire.GetString(params, member)
	return Truncate(name, maxSubject)
}
