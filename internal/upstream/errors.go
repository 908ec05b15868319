package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ClientError converts the error of a request of method to the one for the client: with the
// server's name, the cause and the next step. Errors of the client's own context and wire
// errors are returned unchanged.
func (o *Options) ClientError(method string, err error) error {
	var short *mcp.ShortageError
	var large *transport.TooLongError
	var unreadable *UnreadableError
	var credential *CredentialError
	switch {
	case errors.As(err, &credential) && credential.Refusal != nil:
		return credential.Refusal
	case errors.As(err, &credential):
		return o.credentialError(credential)
	case errors.As(err, &short):
		return short.Of(o.Name, method, spec.Repeatable(method))
	case errors.As(err, new(*wire.Error)), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, mcp.ErrNotSent):
		return fmt.Errorf("server %q: %w", o.Name, mcp.ErrNotSent)
	case errors.Is(err, mcp.ErrShutdown):
		return fmt.Errorf("server %q: %w", o.Name, mcp.ErrShutdown)
	case errors.Is(err, ErrTooLong):
		return o.lateError(method)
	case errors.As(err, &large):
		return wire.Errorf(spec.CodeInternal, "server %q answered %s with more than %d bytes; %s if that is normal for it", o.Name, method, large.Limit, limits.UpstreamMessage.Raise())
	case errors.As(err, &unreadable) && wire.TooDeep(err):
		return wire.Errorf(spec.CodeInternal, "server %q sent a response that can't be read: %v; %s if that is normal for it", o.Name, unreadable.Err, limits.Depth.Raise())
	case errors.As(err, &unreadable):
		return wire.Errorf(spec.CodeInternal, "server %q sent a response that can't be read: %v", o.Name, unreadable.Err)
	}
	return o.failureError(method, err)
}

func (o *Options) credentialError(e *CredentialError) error {
	err := mcp.Inside(spec.CodeInternal, "server %q %v; %s", o.Name, transport.Reason{Err: e.Err}, e.Step)
	if e.Login {
		return &mcp.LoginError{Err: err}
	}
	return err
}

// lateError is ClientError for a request whose time was over.
func (o *Options) lateError(method string) error {
	if silence := o.Settings.Timeouts.Silence(method); silence > 0 {
		return wire.Errorf(spec.CodeInternal, "server %q did not answer %s in time (%v, at most %v with progress); raise timeouts.request or timeouts.max if that is normal for it",
			o.Name, method, silence, o.Settings.Timeouts.Max)
	}
	return wire.Errorf(spec.CodeInternal, "server %q did not answer %s within %v; raise timeouts.max if that is normal for it", o.Name, method, o.Settings.Timeouts.Max)
}

// failureError is ClientError for a request that got no response.
func (o *Options) failureError(method string, err error) error {
	f, reason := AsFailure(err), transport.Reason{Err: err}
	var status *StatusError
	switch {
	case f != nil && f.Fate == MayHaveRun && !spec.Repeatable(method):
		return mcp.Inside(spec.CodeInternal, "server %q was lost while it ran %s: %v; the request may have taken effect and was not repeated: check before sending it again",
			o.Name, method, reason)
	case errors.As(err, &status):
		return mcp.Inside(spec.CodeInternal, "server %q refused %s: %v%s", o.Name, method, reason, status.Step())
	}
	return &mcp.UnavailableError{Err: mcp.Inside(spec.CodeInternal, "server %q can't be reached: %v; %s", o.Name, reason, cmp.Or(transport.Advice(err), "check that it runs, then try again"))}
}
