package back

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// clientError turns what prevented an answer into what a client is told: the
// server's name, the cause, the next step. Errors of the caller's own context
// and wire errors pass.
func (b *Back) clientError(method string, err error) error {
	var we *wire.Error
	var short *mcp.ShortageError
	if errors.As(err, &short) {
		return short.Of(b.opts.Name, method, spec.Repeatable(method))
	}
	if errors.As(err, &we) || errors.Is(err, context.Canceled) {
		return err
	}
	name, f := b.opts.Name, upstream.AsFailure(err)
	var status *upstream.StatusError
	var unreadable *upstream.UnreadableError
	var foreign *foreignRevision
	var large *transport.TooLongError
	switch {
	case errors.Is(err, mcp.ErrShutdown):
		return fmt.Errorf("server %q: %w", name, mcp.ErrShutdown)
	case errors.As(err, &foreign):
		return wire.Errorf(spec.CodeInternal, "server %q %v; upgrade mcpbridge, or set the server's era", name, foreign)
	case errors.Is(err, upstream.ErrTooLong):
		return wire.Errorf(spec.CodeInternal, "server %q did not answer %s in time (%v, at most %v with progress); raise timeouts.request or timeouts.max if that is normal for it",
			name, method, b.opts.Timeouts.Request, b.opts.Timeouts.Max)
	case errors.Is(err, errSlowClient):
		return slowClient(name, method)
	case errors.As(err, &large):
		return wire.Errorf(spec.CodeInternal, "server %q answered %s with more than %d bytes; %s if that is normal for it", name, method, large.Limit, limits.UpstreamMessage.Raise())
	case errors.As(err, &unreadable):
		return wire.Errorf(spec.CodeInternal, "server %q sent an answer that can't be read: %v", name, unreadable.Err)
	case errors.As(err, &status):
		return wire.Errorf(spec.CodeInternal, "server %q refused %s: %v%s", name, method, status, status.Step())
	case f != nil && f.Fate == upstream.MayHaveRun && !spec.Repeatable(method):
		return mcp.Inside(spec.CodeInternal, "server %q was lost while it ran %s: %v; the request may have taken effect and was not repeated: check before sending it again",
			name, method, transport.Reason{Err: err})
	}
	return mcp.Inside(spec.CodeInternal, "server %q can't be reached: %v; %s", name, transport.Reason{Err: err}, cmp.Or(transport.Advice(err), "check that it runs, then try again"))
}

// upstreamError turns a server's error into what means the same to a client that
// knows this era and not the way the request took.
//
// Spec: 2026-07-28, basic/index, Error Codes; server/resources, Error Handling.
func (b *Back) upstreamError(req *mcp.Request, e *wire.Error) error {
	switch e.Code {
	case spec.CodeResourceNotFound:
		if req.Method == spec.MethodResourcesRead {
			return &wire.Error{Code: spec.CodeInvalidParams, Message: e.Message, Data: mcp.WithURI(e.Data, wire.Get(req.Params, "uri"))}
		}
	case spec.CodeHeaderMismatch:
		// The headers are the gateway's: the client can do nothing about them.
		return wire.Errorf(spec.CodeInternal, "server %q does not accept the headers of %s: %s; if its tools have changed, list them again", b.opts.Name, req.Method, upstream.Shorten(e.Message))
	case spec.CodeUnsupportedVersion:
		return b.clientError(req.Method, newForeignRevision(wire.Get(e.Data, "supported")))
	case spec.CodeMissingCapability:
		return &mcp.Refusal{Err: e}
	case spec.CodeMethodNotFound:
		if !b.declares(req.Profile.Scope, req.Method) {
			return &mcp.Refusal{Err: e}
		}
	}
	return e
}

// A foreignRevision says that a server speaks no revision that is spoken here.
type foreignRevision struct {
	supported string // as the server listed them; empty if it did not
	ours      bool   // one of them is, and it is refused all the same
}

func newForeignRevision(list []byte) *foreignRevision {
	var names []string
	for v := range wire.Elements(list) {
		names = append(names, wire.Unquote(v))
	}
	return &foreignRevision{upstream.Shorten(strings.Join(names, ", ")), mutual(list) != ""}
}

func (e *foreignRevision) Error() string {
	switch {
	case e.ours:
		return fmt.Sprintf("refuses requests in revision %s, though it lists %s", spec.LatestModern, e.supported)
	case e.supported == "":
		return "does not speak revision " + string(spec.LatestModern)
	}
	return fmt.Sprintf("speaks revisions %s, mcpbridge needs %s", e.supported, spec.LatestModern)
}
