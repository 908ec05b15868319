package back

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Probe opens a session with a server, reads its lists if how says so, and ends the
// session. o.Settings.Timeouts.Connect bounds the handshake, o.Settings.Timeouts.Own each
// list. The verdict is spec.Legacy if the handshake succeeded, spec.Modern if the server
// refused it and supports a modern revision, and otherwise spec.Unknown, because a legacy
// server may refuse one client or be busy. Probe returns an error if o is invalid or ctx is
// cancelled.
func Probe(ctx context.Context, o Options, how mcp.Probing) (mcp.Verdict, error) {
	o.Doubt = nil // the caller is probing already
	b, err := New(o)
	if err != nil {
		return mcp.Verdict{}, err
	}
	var v mcp.Verdict
	var s *session
	defer func() {
		if s != nil {
			endSession(ctx, s)
		}
		_ = b.Close(context.WithoutCancel(ctx)) // an error has no effect on the verdict
	}()
	sent := fmt.Sprintf("%s in revision %s", spec.MethodInitialize, spec.LatestLegacy)
	greet := how.Take(sent, func() (answer, means string) {
		if s, err = b.open(ctx, b.probeProfile()); err != nil {
			v = failedVerdict(err)
			return v.Reason, "no session"
		}
		if s.isOdd() {
			return fmt.Sprintf("revision %q, which has no %s", s.answered, spec.MethodInitialize), "it is used as one of " + string(s.revision)
		}
		return "revision " + string(s.revision), "it speaks " + spec.Legacy.Speaks()
	})
	v.Took, v.Steps = greet.Took, []mcp.Step{greet}
	if s != nil {
		v.Older = s.IsSSE()
		addDescription(ctx, s, &v, how)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return mcp.Verdict{}, context.Cause(ctx)
	}
	return v, nil
}

// addDescription adds what a session knows of its server to the verdict.
func addDescription(ctx context.Context, s *session, v *mcp.Verdict, how mcp.Probing) {
	v.Era, v.Reason = spec.Legacy, "it answered "+spec.MethodInitialize
	v.Revisions = []spec.Revision{s.revision}
	v.Description = &mcp.Description{Capabilities: s.caps.Raw, ServerInfo: s.serverInfo, Instructions: s.instructions}
	v.Unasked, _ = s.Listening()
	if !how.Lists {
		return
	}
	lists, steps := how.List(ctx, s.caps.Raw, s.opts.Settings.Timeouts.Own(), s.Request)
	v.Lists, v.Steps = lists, append(v.Steps, steps...)
}

// failedVerdict returns the verdict if no session could be opened.
func failedVerdict(err error) mcp.Verdict {
	v := mcp.Verdict{Reason: mcp.Shorten(transport.Cause(err).Error()), Cause: err}
	var status *upstream.StatusError
	var handshake *transport.HandshakeError
	switch {
	case errors.As(err, &status):
		v.Status = status.Code
		v.Reason += status.Mistake()
	case errors.As(err, &handshake):
		v.Status = handshake.Status
	case errors.Is(err, errSlowHandshake):
		v.Cause = context.DeadlineExceeded
	}
	if proof := provesModern(err); proof != "" {
		v.Era, v.Reason = spec.Modern, proof
	}
	return v
}
