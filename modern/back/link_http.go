package back

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An httpLink reaches a server over Streamable HTTP. Each request is a POST whose
// goroutine also reads the response; the link has no goroutines.
//
// Spec: 2026-07-28, basic/transports/streamable-http.
type httpLink struct {
	opts      *Options
	base      http.Header // of every request; never changed
	http      *upstream.HTTP
	unclaimed func(c *upstreamCall, m *wire.Message)

	breaker upstream.Breaker

	stop context.CancelCauseFunc // ends all requests; see live
	live context.Context         // ends with close
}

// newHTTPLink returns a link for opts, which were checked. It calls unclaimed for
// notifications that are not for a request's caller.
func newHTTPLink(opts *Options, news func(*upstreamCall, *wire.Message)) *httpLink {
	l := &httpLink{opts: opts, base: opts.BaseHeader(), http: upstream.NewHTTP(&opts.Options, upstream.Reading{}), unclaimed: news}
	l.live, l.stop = context.WithCancelCause(context.Background())
	return l
}

// exchange implements link.
func (l *httpLink) exchange(ctx context.Context, c *upstreamCall) (a upstream.Response, err error) {
	if c.parent == nil || !c.parent.bound {
		ctx, c.Cancel = l.bind(ctx)
		defer func() {
			if err != nil {
				c.Cancel(nil)
			}
		}()
	}
	r, err := l.post(ctx, c)
	if err != nil {
		return a, err
	}
	return l.read(ctx, c, r)
}

// bind implements link.
func (l *httpLink) bind(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.live, func() { cancel(context.Cause(l.live)) })
	return ctx, func(cause error) { unhook(); cancel(cause) }
}

// post sends the request.
func (l *httpLink) post(ctx context.Context, c *upstreamCall) (*upstream.Reply, error) {
	if err := cmp.Or(context.Cause(l.live), l.breaker.Open()); err != nil {
		return nil, &upstream.Failure{Cause: err, Fate: upstream.NotSent}
	}
	began := time.Now()
	r, err := l.http.Post(ctx, &c.Call, l.base, c.frame)
	if err == nil {
		l.breaker.Succeeded()
	} else if f := upstream.AsFailure(err); f != nil && f.Fate == upstream.NotSent && !f.Again && ctx.Err() == nil {
		l.breaker.Failed(began, f.Cause)
	}
	return r, err
}

// read reads the reply to the request c up to the response.
func (l *httpLink) read(ctx context.Context, c *upstreamCall, r *upstream.Reply) (upstream.Response, error) {
	if r.IsError() {
		return l.rejected(ctx, c, r)
	}
	for {
		m, err := r.Next()
		if errors.Is(err, upstream.ErrAccepted) {
			l.opts.Doubt("it accepted " + c.Method + " without answering it")
		}
		if err != nil {
			return upstream.Response{}, err
		}
		if m.Kind() == wire.Response {
			return r.Response(), nil
		}
		if c.listens() && endsStream(m, c) {
			r.Close()
			return upstream.Response{Result: completed, Release: func() { c.Cancel(nil) }}, nil
		}
		c.noteActivity()
		if m.Kind() == wire.Notification {
			l.tell(ctx, c, r, m)
		} else {
			l.drop("foreign message", c, r)
		}
	}
}

// tell passes a notification on a request's own stream to its caller. A slow caller slows
// the server down.
func (l *httpLink) tell(ctx context.Context, c *upstreamCall, r *upstream.Reply, m *wire.Message) {
	if m.Method == spec.NotifyProgress && !c.listens() {
		if id, ok := tokenOf(m); !ok || id != c.ID {
			l.drop("foreign progress", c, r)
			return
		}
	}
	if n, ok := c.forCaller(m); ok {
		c.notify(ctx, n)
		if !c.listens() || m.Method != spec.NotifyToolsListChanged {
			return
		}
	}
	if !c.listens() {
		r.Useless()
	}
	l.unclaimed(c, m)
}

func (l *httpLink) drop(what string, c *upstreamCall, r *upstream.Reply) {
	r.Useless()
	l.opts.Metrics.Dropped(l.opts.Name, what)
	l.opts.Logger.Debug("skipping message of server", "what", what, "method", c.Method)
}

// rejected reads an HTTP error: a JSON-RPC error that answers the request, whatever the
// status, or a failure.
func (l *httpLink) rejected(ctx context.Context, c *upstreamCall, r *upstream.Reply) (upstream.Response, error) {
	status, m := r.Rejection()
	if ctx.Err() != nil {
		return upstream.Response{}, context.Cause(ctx)
	}
	if m != nil && !status.AboutCredentials() && (c.Is(m.ID) || m.ID.IsZero() && spec.ModernError(m.Error.Code)) {
		a := upstream.ResponseOf(m, func() {
			if c.Cancel != nil {
				c.Cancel(nil)
			}
		})
		a.Status = status.Code
		return a, nil
	}
	if upstream.LooksForeign(status.Code) || status.Code == http.StatusNotAcceptable {
		l.opts.Doubt("it answered " + c.Method + " with " + status.Error())
	}
	return upstream.Response{}, status.Failure()
}

// connected and noise implement link: silence of a URL is no evidence.
func (l *httpLink) connected() bool { return false }
func (l *httpLink) noise() string   { return "" }

// close implements link: it ends all requests and closes idle connections.
func (l *httpLink) close(context.Context) error {
	l.stop(mcp.ErrShutdown)
	l.http.Close()
	return nil
}

var _ link = (*httpLink)(nil)
