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

// Probe asks a server, over a connection of its own, what it is. The question is
// bounded by o.Timeouts.Connect, each list by o.Timeouts.Request: a command that has
// said nothing by then is of the legacy era, a URL that has not is no evidence. The
// error says that o is unusable, or that ctx was cancelled.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility with
// Initialization-Based Versions.
func Probe(ctx context.Context, o Options, how mcp.Probing) (mcp.Verdict, error) {
	o.Doubt = nil  // that is what is being found out
	o.Logger = nil // which the verdict says: nothing is up or down, or tried again
	b, err := New(o)
	if err != nil {
		return mcp.Verdict{}, err
	}
	defer func() { _ = b.Close(context.WithoutCancel(ctx)) }() // it served its purpose
	begun := time.Now()
	v := prober{b}.probe(ctx, how)
	v.Took = time.Since(begun)
	if v.Era == spec.Modern && v.Description != nil && how.Lists {
		lists, steps := how.List(ctx, v.Description.Capabilities, b.opts.Timeouts.Request, func(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
			return b.request(ctx, method, params, b.probeProfile())
		})
		v.Lists, v.Steps = lists, append(v.Steps, steps...)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return mcp.Verdict{}, context.Cause(ctx)
	}
	return v, nil
}

// A prober asks the server of a Back what it is.
type prober struct{ *Back }

// probe asks until there is an answer that asks for no other revision: some servers
// refuse whatever comes first.
func (p prober) probe(ctx context.Context, how mcp.Probing) mcp.Verdict {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeouts.Connect)
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
			f = p.evaluate(ctx, a, err, again)
			return f.answer, f.means()
		}))
		if !f.retry {
			f.Steps = steps
			return f.Verdict
		}
	}
}

// A probeResult is what one answer shows.
type probeResult struct {
	mcp.Verdict
	answer string // what came, in short
	retry  bool   // it asks for another revision
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

// evaluate says what came of the question. again says that it was the second.
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

// evaluateResult judges a result.
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

// evaluateError judges an error.
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

// noResponse judges what is no answer.
func (p prober) noResponse(ctx context.Context, err error) probeResult {
	var f probeResult
	f.answer = mcp.Shorten(transport.Cause(err).Error())
	f.Reason, f.Cause = f.answer, err
	failed := upstream.AsFailure(err)
	var status *upstream.StatusError
	var handshake *transport.HandshakeError
	switch {
	case errors.As(err, &status):
		f.answer = status.Error()
		f.Reason = fmt.Sprintf("it answered %s with %v%s", spec.MethodDiscover, status, status.Advice())
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
		f.Inconclusive = failed != nil && failed.Fate == upstream.MayHaveRun // it was reached, and hung up
	}
	return f
}

// eraOf is that of a server which answers with a status and no error of this era.
func eraOf(e *upstream.StatusError) spec.Era {
	switch {
	case e.AboutCredentials(), e.Code == http.StatusTooManyRequests:
		return spec.Unknown
	case e.Code >= 400 && e.Code <= 499:
		return spec.Legacy
	}
	return spec.Unknown
}

// isNetwork reports whether an HTTP exchange failed on the way, so that nothing is
// known of what the server would have said.
func isNetwork(f *upstream.Failure) bool { return f.Again && !errors.Is(f, upstream.ErrUnanswered) }

func revisionsOf(list []byte) []spec.Revision {
	var out []spec.Revision
	for v := range wire.Elements(list) {
		out = append(out, spec.Revision(wire.Unquote(v)))
	}
	return out
}
