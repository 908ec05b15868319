package back

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
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
	var mismatch *revisionMismatch
	var alone *oneProcessError
	var status *upstream.StatusError
	switch {
	case errors.As(err, &mismatch):
		return wire.Errorf(spec.CodeInternal, "%v; upgrade mcpbridge, or set the server's era", mismatch)
	case errors.As(err, &alone):
		return mcp.Inside(spec.CodeInternal, "%v", alone)
	case errors.As(err, &status) && status.Code == http.StatusBadRequest && !spec.Defined(method):
		return mcp.Refuse(spec.CodeMethodNotFound, "server %q does not know method %q: it answered %v", b.opts.Name, method, status)
	}
	return b.opts.ClientError(method, err)
}

// cause returns an error without the parts of a transport error that are of no use to
// people; see [transport.Cause].
func cause(err error) error { return transport.Cause(err) }

// upstreamError converts a legacy server's error to the modern one with the same meaning.
// declared says whether the server declared the method's capability.
//
// Spec: 2026-07-28, basic/index, Error Codes; server/resources, Error Handling.
func upstreamError(req *mcp.Request, e *wire.Error, declared bool) error {
	switch {
	case e.Code == spec.CodeResourceNotFound:
		return &wire.Error{Code: spec.CodeInvalidParams, Message: e.Message, Data: mcp.WithURI(e.Data, wire.Get(req.Params, "uri"))}
	case spec.Reserved(e.Code):
		return &wire.Error{Code: spec.CodeInternal, Message: e.Message, Data: wrapCode(e)}
	case e.Code == spec.CodeMethodNotFound && !declared:
		return &mcp.Refusal{Err: e}
	}
	return e
}

// wrapCode returns data with the code and data of an error whose code has another meaning
// for modern clients.
func wrapCode(e *wire.Error) []byte {
	code := strconv.AppendInt(nil, e.Code, 10)
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "code", Value: code}, wire.Edit{Name: "data", Value: e.Data})
}
