package back

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errTooLong ends a call's context, beside its caller's own causes.
var errTooLong = errors.New("request time-out")

// fate says what a server may have done with a request that got no answer.
type fate uint8

const (
	mayHaveRun fate = iota
	refused         // the server turned it away before looking at it
	notSent
)

// A failure says that a request got no answer, and what may have become of it.
type failure struct {
	cause error
	fate  fate
	again bool // the next try may fare better
}

func (f *failure) Error() string { return f.cause.Error() }

func (f *failure) Unwrap() error { return f.cause }

// repeatable reports whether sending a request of method again can't do twice
// what the client asked for once.
func (f *failure) repeatable(method string) bool {
	return f.again && (f.fate != mayHaveRun || spec.Repeatable(method))
}

// asFailure returns the failure in err's chain, or nil.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// statusError is an HTTP answer that is none to a JSON-RPC message.
type statusError struct {
	code int
	note string // what the server's own error said, if it is one

	slash bool // it leads to the same URL with a slash at its end
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP %d %s", e.code, http.StatusText(e.code))
	if e.note != "" {
		text += ": " + e.note
	}
	return text
}

// Public returns what clients are told: all of it, since the server meant it for them.
func (e *statusError) Public() string { return e.Error() }

// aboutUs reports whether the status is about the gateway's own credentials, of which
// a client knows nothing.
func (e *statusError) aboutUs() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// advice is what to do about a status that configuration causes, after a
// semicolon.
func (e *statusError) advice() string {
	switch {
	case e.aboutUs():
		return "; check the credentials in the server's headers"
	case e.slash:
		return "; redirects are not followed: put a / at the end of its URL"
	case e.code >= 300 && e.code <= 399:
		return "; redirects are not followed: configure the URL it leads to"
	}
	return ""
}

// step is what to do about a status, after a semicolon: one that the server gave no
// reasons for may come of a wrong path.
func (e *statusError) step() string {
	if e.note == "" && (e.code == http.StatusNotFound || e.code == http.StatusMethodNotAllowed) {
		return "; check the path of its URL"
	}
	return e.advice()
}

// fate says what a server that answered with an HTTP error did with the request:
// a client error is a refusal, anything else may have come after.
func (e *statusError) fate() fate {
	if e.code >= 300 && e.code <= 499 {
		return refused
	}
	return mayHaveRun
}

// legacyLooking reports whether a server of the other era may answer so, and one
// of this era would not.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility.
func (e *statusError) legacyLooking() bool {
	switch e.code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return true
	}
	return false
}

// shorten bounds what of a server's words goes into a message.
func shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

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
	name, f := b.opts.Name, asFailure(err)
	var status *statusError
	var foreign *foreignRevision
	var large *transport.TooLongError
	switch {
	case errors.Is(err, mcp.ErrShutdown):
		return fmt.Errorf("server %q: %w", name, mcp.ErrShutdown)
	case errors.As(err, &foreign):
		return wire.Errorf(spec.CodeInternal, "server %q %v; upgrade mcpbridge, or set the server's era", name, foreign)
	case errors.Is(err, errTooLong):
		return wire.Errorf(spec.CodeInternal, "server %q did not answer %s in time (%v, at most %v with progress); raise timeouts.request or timeouts.max if that is normal for it",
			name, method, b.opts.Timeouts.Request, b.opts.Timeouts.Max)
	case errors.Is(err, errSlowClient):
		return slowClient(name, method)
	case errors.As(err, &large):
		return wire.Errorf(spec.CodeInternal, "server %q answered %s with more than %d bytes; %s if that is normal for it", name, method, large.Limit, limits.UpstreamMessage.Raise())
	case errors.As(err, &status):
		return wire.Errorf(spec.CodeInternal, "server %q refused %s: %v%s", name, method, status, status.step())
	case f != nil && f.fate == mayHaveRun && !spec.Repeatable(method):
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
		return wire.Errorf(spec.CodeInternal, "server %q does not accept the headers of %s: %s; if its tools have changed, list them again", b.opts.Name, req.Method, shorten(e.Message))
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
	return &foreignRevision{shorten(strings.Join(names, ", ")), mutual(list) != ""}
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
