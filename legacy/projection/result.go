package projection

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AppendResult appends to dst the result that a client of rev gets for body, a
// modern server's result of a request of method with params, and returns the
// extended slice. t, which may be nil, remembers tools of the server's scope
// between their list and their calls.
//
// body has passed [wire.Check]. The error says that body is no complete result.
// Spec: 2026-07-28, basic/index, Result Responses.
func AppendResult(dst []byte, rev spec.Revision, method string, params, body []byte, t *Tools) ([]byte, error) {
	if typ, ok := wire.GetString(body, "resultType"); ok && typ != spec.ResultComplete {
		return dst, fmt.Errorf("result of type %q", typ)
	}
	return wire.AppendEdited(dst, body,
		wire.Edit{Name: "resultType"}, wire.Edit{Name: "ttlMs"}, wire.Edit{Name: "cacheScope"}), nil
}
