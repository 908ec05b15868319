package back

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Probe finds out whether a server is modern, over a connection of its own.
// o.Settings.Timeouts.Connect bounds server/discover, o.Settings.Timeouts.Own each list. A command that
// has not responded by then is legacy; for a URL that is no evidence. Probe returns an
// error if o is invalid or ctx is cancelled.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility with Initialization-Based
// Versions.
func Probe(ctx context.Context, o Options, how mcp.Probing) (mcp.Verdict, error) {
	o.Doubt = nil  // the caller is probing already
	o.Logger = nil // the verdict contains all there is to log
	b, err := New(o)
	if err != nil {
		return mcp.Verdict{}, err
	}
	defer func() { _ = b.Close(context.WithoutCancel(ctx)) }() // an error has no effect on the verdict
	begun := time.Now()
	v := prober{b}.probe(ctx, how)
	v.Took = time.Since(begun)
	if v.Era == spec.Modern && v.Description != nil && how.Lists {
		lists, steps := how.List(ctx, v.Description.Capabilities, b.opts.Settings.Timeouts.Own(), func(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
			return b.request(ctx, method, params, b.probeProfile())
		})
		v.Lists, v.Steps = lists, append(v.Steps, steps...)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return mcp.Verdict{}, context.Cause(ctx)
	}
	return v, nil
}

// A prober probes the server of a Back.
type prober struct{ *Back }

// probe sends server/discover, and repeats it once if the server asks for another
// revision: some servers refuse the first request whatever it is.
func (p prober) probe(ctx context.Context, how mcp.Probing) mcp.Verdict {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Settings.Timeouts.Connect)
	defer cancel()
	var steps []mcp.Step
	for again := false; ; again = true {
		var f probeResult
		sent := fmt.Sprintf("%s in revision %s", spec.MethodDiscover, p.revision())
		steps = append(steps, how.Take(sent, func() (answer, means string) {
			ctx, done := how.Await(ctx)
			defer done()
			c := p.ownCall(spec.MethodDiscover, []byte("{}"), p.probeProfile())
			c.noCancel = true
			a, err := p.link.exchange(ctx, c)
			c.EndOwn(&a, err)
			f = p.evaluate(ctx, a, err, again)
			return f.answer, f.means()
		}))
		if !f.retry {
			f.Steps = steps
			return f.Verdict
		}
	}
}

// A probeResult is the evidence in one response.
type probeResult struct {
	mcp.Verdict
	answer string // the response in short
	retry  bool   // the server asks for another revision
}

func (f *probeResult) means() string {
	switch {
	case f.retry:
		return "asking once more: it names a revision that is spoken here"
	case f.Era == spec.Unknown:
		return "that does not say what it speaks"
	}
	return "so does a server of " + f.Era.Speaks()
}

// evaluate returns the evidence in the outcome of server/discover. again says that it was
// sent a second time.
func (p prober) evaluate(ctx context.Context, a upstream.Response, err error, again bool) probeResult {
	if err != nil {
		return p.noResponse(ctx, err)
	}
	if a.Err == nil {
		defer a.Free()
		return p.evaluateResult(upstream.Keep(a.Result))
	}
	status := &upstream.StatusError{Code: a.Status}
	e := a.TakeError()
	switch {
	case mcp.Unavailable(e):
		return unavailable(e)
	case p.renegotiated(e) && !again:
		f := evaluateError(e)
		f.retry = true
		return f
	case a.Status >= 400 && eraOf(status) == spec.Unknown && !spec.ModernError(e.Code):
		status.Note = mcp.Shorten(e.Message)
		return p.noResponse(ctx, status)
	}
	return evaluateError(e)
}

// evaluateResult returns the evidence in a result.
func (p prober) evaluateResult(result []byte) probeResult {
	versions := wire.Get(result, "supportedVersions")
	var f probeResult
	f.Era, f.Revisions = spec.Legacy, revisionsOf(versions)
	f.answer = fmt.Sprintf("a result that names %s", cmp.Or(newUnsupportedRevision(versions).supported, "no revisions"))
	switch {
	case mutual(versions) != "":
		f.Era, f.Reason = spec.Modern, "it answered "+spec.MethodDiscover
		d := descriptionOf(result)
		if caps := wire.Get(result, "capabilities"); wire.IsObject(caps) {
			d.Capabilities = caps
		}
		d.Cache.TTL = ttlOf(wire.Get(result, "ttlMs")).Milliseconds()
		f.Description = &d
	case len(f.Revisions) > 0:
		f.Reason = fmt.Sprintf("it answered %s, and %v", spec.MethodDiscover, newUnsupportedRevision(versions))
	default:
		f.Reason = fmt.Sprintf("it answered %s with a result that names no revisions", spec.MethodDiscover)
	}
	return f
}

// evaluateError returns the evidence in an error.
func evaluateError(e *wire.Error) probeResult {
	f := probeResult{answer: "error " + mcp.Shorten(e.Error())}
	f.Era, f.Reason = spec.Legacy, fmt.Sprintf("it refused %s: %s", spec.MethodDiscover, mcp.Shorten(e.Error()))
	switch e.Code {
	case spec.CodeHeaderMismatch, spec.CodeMissingCapability:
		f.Era = spec.Modern
	case spec.CodeUnsupportedVersion:
		supported := wire.Get(e.Data, "supported")
		f.Revisions = revisionsOf(supported)
		if mutual(supported) != "" {
			f.Era = spec.Modern
		}
	}
	return f
}

// unavailable returns the evidence of an endpoint of mcpbridge whose server can't be used: it says
// nothing of that server.
func unavailable(e *wire.Error) probeResult {
	f := probeResult{answer: e.Message}
	f.Reason, f.Cause = e.Message, &mcp.UnavailableError{Err: errors.New(e.Message)}
	return f
}

// noResponse returns the evidence if there was no response.
func (p prober) noResponse(ctx context.Context, err error) probeResult {
	var f probeResult
	f.answer = mcp.Shorten(transport.Cause(err).Error())
	f.Reason, f.Cause = f.answer, err
	failed := upstream.AsFailure(err)
	var status *upstream.StatusError
	var handshake *transport.HandshakeError
	switch {
	case errors.As(err, &status) && status.Away:
		return unavailable(&wire.Error{Message: status.Note})
	case errors.As(err, &status):
		f.answer = status.Error()
		f.Reason = fmt.Sprintf("it answered %s with %v%s", spec.MethodDiscover, status, status.Mistake())
		f.Era, f.Status = eraOf(status), status.Code
		f.Inconclusive = status.Code >= 500
	case errors.As(err, &handshake):
		f.Status = handshake.Status
	case ctx.Err() != nil:
		f.answer = "nothing in time" + p.link.noise()
		f.Reason = "it did not answer " + spec.MethodDiscover + " in time" + p.link.noise()
		f.Inconclusive, f.Cause = true, context.Cause(ctx)
		if p.link.connected() {
			f.Era = spec.Legacy
		}
	case p.link.connected(), failed != nil && failed.Fate == upstream.MayHaveRun && !isNetwork(failed):
		f.Era = spec.Legacy
	default:
		f.Inconclusive = failed != nil && failed.Fate == upstream.MayHaveRun // it closed the connection
	}
	return f
}

// eraOf returns the era of a server that responds with an HTTP status and without a modern
// error.
func eraOf(e *upstream.StatusError) spec.Era {
	switch {
	case e.AboutCredentials(), e.Code == http.StatusTooManyRequests:
		return spec.Unknown
	case e.Code >= 400 && e.Code <= 499:
		return spec.Legacy
	}
	return spec.Unknown
}

// isNetwork reports whether an HTTP exchange failed in the network, so that it is unknown
// how the server would have responded.
func isNetwork(f *upstream.Failure) bool { return f.Again && !errors.Is(f, upstream.ErrUnanswered) }

func revisionsOf(list []byte) []spec.Revision {
	var out []spec.Revision
	for v := range wire.Elements(list) {
		out = append(out, spec.Revision(wire.Unquote(v)))
	}
	return out
}
