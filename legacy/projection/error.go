package projection

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Error returns the error for a legacy client, where e is a modern server's. It returns e
// itself if the client knows the meaning of e, and for a code in the reserved range that no
// revision defines, which has a meaning of the server's own. A missing resource stays
// -32602: SDKs that speak both eras send that to their legacy clients, too.
//
// Spec: 2026-07-28, basic/index, Error Codes.
func Error(e *wire.Error) *wire.Error {
	if spec.ModernError(e.Code) || e.Code == spec.CodeURLElicitation {
		code := strconv.AppendInt(nil, e.Code, 10)
		kept := wire.AppendEdited(nil, nil, wire.Edit{Name: "code", Value: code}, wire.Edit{Name: "data", Value: e.Data})
		return &wire.Error{Code: spec.CodeInternal, Message: e.Message + advice(e), Data: kept}
	}
	return e
}

// advice returns what a person can do about an error of the modern revision.
func advice(e *wire.Error) string {
	switch e.Code {
	case spec.CodeMissingCapability:
		if need := capabilityNames(wire.Get(e.Data, "requiredCapabilities")); need != "" {
			return fmt.Sprintf("; use a client that declares the capability %s, or do without the feature that requires it", need)
		}
		return "; use a client with more capabilities, or do without the feature that requires them"
	case spec.CodeUnsupportedVersion:
		return fmt.Sprintf("; the server speaks %s: upgrade mcpbridge or the server, so that they have a revision in common", revisionNames(wire.Get(e.Data, "supported")))
	case spec.CodeHeaderMismatch:
		return "; the server refused the headers that mcpbridge made for the request: list the tools again, for their parameters may have changed"
	}
	return ""
}

// capabilityNames returns the names in a capabilities object: elicitation.url,
// sampling.
func capabilityNames(caps []byte) string {
	var names []string
	for k, v := range wire.Members(caps) {
		if wire.IsEmptyObject(v) || !wire.IsObject(v) {
			names = append(names, k.String())
			continue
		}
		for sub := range wire.Members(v) {
			names = append(names, k.String()+"."+sub.String())
		}
	}
	return strings.Join(names, ", ")
}

func revisionNames(list []byte) string {
	return cmp.Or(strings.Join(wire.Strings(list), ", "), "no revision that mcpbridge knows")
}
