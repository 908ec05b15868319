package back

import (
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// clientError converts the reason why there is no response to the error for the client:
// the server's name, the cause, and the next step. It passes on errors of the caller's
// context, wire errors and [mcp.ErrOtherEra].
func (b *Back) clientError(method string, err error) error {
	told := b.translateError(method, err)
	if errors.Is(err, mcp.ErrOtherEra) && !errors.Is(told, mcp.ErrOtherEra) {
		return &otherEraError{told}
	}
	return told
}

func (b *Back) translateError(method string, err error) error {
	var mismatch *link.RevisionMismatch
	var alone *oneProcessError
	var status *upstream.StatusError
	var refused *handshakeRefusal
	switch {
	case errors.As(err, &mismatch):
		return wire.Errorf(spec.CodeInternal, "%v; upgrade mcpbridge, or set the server's era", mismatch)
	case errors.As(err, &alone):
		return mcp.Inside(spec.CodeInternal, "%v", alone)
	case errors.As(err, &refused) && refused.refusal != nil && refused.refusal.Code == spec.CodeMethodNotFound:
		return &mcp.UnavailableError{Err: mcp.Inside(spec.CodeInternal, "server %q can't be reached: %v; is it of the newer era? If its configuration has era, remove that", b.opts.Name, transport.Reason{Err: err})}
	case errors.As(err, &status) && status.Code == http.StatusBadRequest && !spec.Defined(method):
		return mcp.Refuse(spec.CodeMethodNotFound, "server %q does not know method %q: it answered %v", b.opts.Name, method, status)
	}
	return b.opts.ClientError(method, err)
}
