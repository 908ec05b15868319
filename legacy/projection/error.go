package projection

import (
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Error returns what a client of rev is told instead of e, a modern server's
// error in answer to a request of method. It returns e itself where rev knows it.
//
// Spec: 2026-07-28, basic/index, Error Codes.
func Error(rev spec.Revision, method string, e *wire.Error) *wire.Error {
	switch {
	case e.Code == spec.CodeInvalidParams && method == spec.MethodResourcesRead && wire.Get(e.Data, "uri") != nil:
		return &wire.Error{Code: spec.CodeResourceNotFound, Message: e.Message, Data: e.Data}
	case spec.Reserved(e.Code):
		return &wire.Error{Code: spec.CodeInternal, Message: e.Message}
	}
	return e
}
