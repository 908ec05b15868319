package back

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// clientError converts the reason why there is no response to the error for the client;
// see [upstream.Options.ClientError].
func (b *Back) clientError(method string, err error) error {
	var foreign *unsupportedRevision
	switch {
	case errors.As(err, &foreign):
		return wire.Errorf(spec.CodeInternal, "server %q %v; upgrade mcpbridge, or set the server's era", b.opts.Name, foreign)
	case errors.Is(err, errSlowClient):
		return slowClient(b.opts.Name, method)
	}
	return b.opts.ClientError(method, err)
}

// upstreamError converts a server's error to one with the same meaning for a client that
// knows nothing of the gateway's own requests and headers.
//
// Spec: 2026-07-28, basic/index, Error Codes; server/resources, Error Handling.
func (b *Back) upstreamError(req *mcp.Request, e *wire.Error) error {
	switch e.Code {
	case spec.CodeResourceNotFound:
		if req.Era == spec.Modern && req.Method == spec.MethodResourcesRead {
			return &wire.Error{Code: spec.CodeInvalidParams, Message: e.Message, Data: mcp.WithURI(e.Data, wire.Get(req.Params, "uri"))}
		}
	case spec.CodeHeaderMismatch:
		// The headers are the gateway's: the client can't change them.
		return wire.Errorf(spec.CodeInternal, "server %q does not accept the headers of %s: %s; if its tools have changed, list them again", b.opts.Name, req.Method, mcp.Shorten(e.Message))
	case spec.CodeUnsupportedVersion:
		return b.clientError(req.Method, newUnsupportedRevision(wire.Get(e.Data, "supported")))
	case spec.CodeMissingCapability:
		return &mcp.Refusal{Err: e}
	case spec.CodeMethodNotFound:
		if !b.discovery.declares(req.Profile, req.Method) {
			return &mcp.Refusal{Err: e}
		}
	}
	return e
}

// An unsupportedRevision reports that a server supports no revision that mcpbridge
// supports.
type unsupportedRevision struct {
	supported string // as the server listed them; empty if it did not
	listed    bool   // the list has one of them, but the server refuses it
}

func newUnsupportedRevision(list []byte) *unsupportedRevision {
	return &unsupportedRevision{mcp.Shorten(strings.Join(wire.Strings(list), ", ")), mutual(list) != ""}
}

func (e *unsupportedRevision) Error() string {
	switch {
	case e.listed:
		return fmt.Sprintf("refuses requests in revision %s, although it lists %s", spec.LatestModern, e.supported)
	case e.supported == "":
		return "does not speak revision " + string(spec.LatestModern)
	}
	return fmt.Sprintf("speaks revisions %s, and mcpbridge needs %s", e.supported, spec.LatestModern)
}
