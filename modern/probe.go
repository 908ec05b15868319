package modern

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Verdict says of which era a server is, by its answer to one server/discover.
type Verdict struct {
	// Era is spec.Unknown if the answer is no evidence: asking again may bring some.
	Era spec.Era
	// Reason is what the server did, for people.
	Reason string
	// Revisions are those that the server named, as it named them.
	Revisions []spec.Revision
	// Description is the server's account of itself; nil if it gave none.
	Description *exchange.Description
	// Took is the time from the request to the answer.
	Took time.Duration
}

// Probe asks a server, over a connection of its own, what it is. ctx bounds it: a
// command that has said nothing by its deadline is of the legacy era, a URL that has
// not is no evidence. The error says that o is unusable, or that ctx was cancelled.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility with
// Initialization-Based Versions.
func Probe(ctx context.Context, o BackOptions) (Verdict, error) {
	o.Doubt = nil // that is what is being found out
	b, err := NewBack(o)
	if err != nil {
		return Verdict{}, err
	}
	// What a child leaves is ended before another is started.
	defer func() { _ = b.Close(context.WithoutCancel(ctx)) }() // it served its purpose
	begun := time.Now()
	v := b.probe(ctx)
	v.Took = time.Since(begun)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return Verdict{}, context.Cause(ctx)
	}
	return v, nil
}

// probe asks until there is an answer that asks for no other revision: some servers
// refuse whatever comes first.
func (b *Back) probe(ctx context.Context) Verdict {
	for again := false; ; again = true {
		a, err := b.link.exchange(ctx, b.ownCall(spec.MethodDiscover, []byte("{}"), b.probeProfile()))
		if err != nil {
			return b.silence(ctx, err)
		}
		if a.err == nil {
			defer a.free()
			return b.discovered(keep(a.result))
		}
		status := &statusError{code: a.status}
		e := a.takeError()
		switch {
		case b.renegotiated(e) && !again:
		case a.status >= 400 && status.era() == spec.Unknown && !isModernError(e.Code):
			status.note = shorten(e.Message)
			return b.silence(ctx, status)
		default:
			return refusedAs(e)
		}
	}
}

// discovered judges a result.
func (b *Back) discovered(result []byte) Verdict {
	versions := wire.Get(result, "supportedVersions")
	v := Verdict{Era: spec.Legacy, Revisions: revisionsOf(versions)}
	switch {
	case mutual(versions) != "":
		v.Era, v.Reason = spec.Modern, "it answered "+spec.MethodDiscover
		d := b.descriptionOf(result)
		d.Cache.TTL = ttlOf(wire.Get(result, "ttlMs")).Milliseconds()
		v.Description = &d
	case len(v.Revisions) > 0:
		v.Reason = fmt.Sprintf("it answered %s, and %v", spec.MethodDiscover, newForeignRevision(versions))
	default:
		v.Reason = fmt.Sprintf("it answered %s with a result that names no revisions", spec.MethodDiscover)
	}
	return v
}

// refusedAs judges an error.
func refusedAs(e *wire.Error) Verdict {
	v := Verdict{Era: spec.Legacy, Reason: fmt.Sprintf("it refused %s: %s", spec.MethodDiscover, shorten(e.Error()))}
	switch e.Code {
	case spec.CodeHeaderMismatch, spec.CodeMissingCapability:
		v.Era = spec.Modern
	case spec.CodeUnsupportedVersion:
		supported := wire.Get(e.Data, "supported")
		v.Revisions = revisionsOf(supported)
		if mutual(supported) != "" {
			v.Era = spec.Modern
		}
	}
	return v
}

// silence judges what is no answer.
func (b *Back) silence(ctx context.Context, err error) Verdict {
	v := Verdict{Reason: shorten(transport.Cause(err).Error())}
	f := asFailure(err)
	var status *statusError
	switch {
	case errors.As(err, &status):
		v.Reason = fmt.Sprintf("it answered %s with %v%s", spec.MethodDiscover, status, status.advice())
		v.Era = status.era()
	case ctx.Err() != nil:
		v.Reason = "it did not answer " + spec.MethodDiscover + " in time"
		if b.wasConnected() {
			v.Era = spec.Legacy
		}
	case b.wasConnected(), f != nil && f.fate == mayHaveRun && !isNetwork(f):
		v.Era = spec.Legacy
	}
	return v
}

// wasConnected reports whether there was a command that ended, or is silent: so does
// one that does not know the request. Of a URL silence tells nothing.
func (b *Back) wasConnected() bool {
	l, ok := b.link.(*connLink)
	return ok && l.connected()
}

// era is that of a server which answers with a status and no error of this era.
func (e *statusError) era() spec.Era {
	switch {
	case e.aboutUs(), e.code == http.StatusTooManyRequests:
		return spec.Unknown
	case e.code >= 400 && e.code <= 499:
		return spec.Legacy
	}
	return spec.Unknown
}

// isNetwork reports whether an HTTP exchange failed on the way, so that nothing is
// known of what the server would have said.
func isNetwork(f *failure) bool { return f.again && !errors.Is(f, errUnanswered) }

func revisionsOf(list []byte) []spec.Revision {
	var out []spec.Revision
	for v := range wire.Elements(list) {
		out = append(out, spec.Revision(wire.Unquote(v)))
	}
	return out
}
