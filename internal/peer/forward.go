package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// maxCopied is how much of a response is passed on at once, in bytes.
const maxCopied = 256 << 10

// patience is how long a request waits for the begin of its response before the other replica
// is asked whether it lives.
const patience = time.Second

// A Forward says how a request is forwarded.
type Forward struct {
	To     replicas.Replica
	Path   string     // at the other replica
	Sender mcp.Sender // who sent the request
	// Whole sends all that is known of the sender's identity, for a credential that the other
	// replica does not see. Otherwise it is verified there once more.
	Whole bool
	Body  []byte // the body, if it was read; nil streams that of the request
	Moved bool   // see Envelope
	// Unauthenticated is that of the Envelope, and Listen says that the response to a POST is an
	// event stream that lasts.
	Unauthenticated, Listen bool

	// Streams serve the event streams of GETs, and of Listen, which last until one of Ends ends,
	// or the client or the other replica ends them.
	Streams *downstream.Streams
	Ends    []context.Context
	// Part is PartPath of the server, where the other replica is asked to end a stream of
	// HTTP+SSE, or a WebSocket, when one of Ends ends.
	Part string
	// Again says that the request may be sent to another replica if this one has stopped, and
	// Placed that it may if this one was not sent it.
	Again, Placed bool
	Upgrade       bool // the request leaves HTTP: see Upgrade
	// Quiet is how long nothing may come of the other replica once that is so.
	Quiet time.Duration
	// WriteTimeout bounds each write to the client.
	WriteTimeout time.Duration
}

// ErrCut is the error of a response that has broken off after its begin.
var ErrCut = errors.New("the response of another replica has broken off")

// An UnansweredError says that a request was sent, and the other replica ended without a
// response: the request may have taken effect.
type UnansweredError struct {
	Instance string
	cause    error
}

func (e *UnansweredError) Error() string {
	return "replica " + e.Instance + " has ended without a response: " + e.cause.Error()
}

// Stopped reports whether the replica has given no sign of life for so long that it counts as
// gone.
func (e *UnansweredError) Stopped() bool { return errors.Is(e.cause, errNoSign) }

// Forward has another replica serve a request, and passes its response on as it comes. If it
// returns an error, nothing was written, except after ErrCut. The error is a [*GoneError],
// [*SilentError] or [*RefusingError] if nothing was done, an [*UnansweredError], or
// downstream.ErrClientLeft. After a GoneError r has its body still, if that is short or was not
// read.
func (g *Group) Forward(w http.ResponseWriter, r *http.Request, f Forward) error {
	if f.Body == nil && r.ContentLength != 0 {
		kept := &keptBody{body: r.Body}
		r.Body = kept
		defer func() { r.Body = kept.rest() }()
	}
	return g.forward(w, r, f)
}

func (g *Group) forward(w http.ResponseWriter, r *http.Request, f Forward) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	left := context.AfterFunc(r.Context(), func() { cancel(downstream.ErrClientLeft) })
	defer left()
	resp, err := g.exchange(ctx, cancel, r, f)
	switch {
	case err != nil:
		cancel(nil)
		return g.counted(g.failed(r, f, err))
	case f.Streams != nil && (r.Method == http.MethodGet || f.Listen) && resp.StatusCode == http.StatusOK && isEvents(resp):
		copyHeader(w.Header(), resp.Header, resp.Header["Connection"])
		g.stream(w, r, resp, f, cancel)
		return g.counted(nil)
	}
	defer cancel(nil)
	defer func() { _ = resp.Body.Close() }() // it was read, or is not wanted any more
	copyHeader(w.Header(), resp.Header, resp.Header["Connection"])
	w.WriteHeader(resp.StatusCode)
	return g.counted(relay(w, r, resp, f.WriteTimeout))
}

// counted counts a forwarded request by its outcome.
func (g *Group) counted(err error) error {
	if g.metrics != nil {
		g.metrics.Forwarded(outcomeOf(err))
	}
	return err
}

func outcomeOf(err error) string {
	switch err.(type) {
	case nil:
		return "ok"
	case *GoneError:
		return "gone"
	case *SilentError:
		return "silent"
	case *RefusingError:
		return "refused"
	case *UnansweredError:
		return "unanswered"
	}
	if err == ErrCut {
		return "cut"
	}
	return "left"
}

// failed returns the error of a request without a response.
func (g *Group) failed(r *http.Request, f Forward, err error) error {
	gone, silent, refusing := (*GoneError)(nil), (*SilentError)(nil), (*RefusingError)(nil)
	switch {
	case r.Context().Err() != nil: // or its body did not come in time
		return downstream.ErrClientLeft
	case errors.As(err, &gone):
		return gone
	case errors.As(err, &silent):
		return silent
	case errors.As(err, &refusing):
		return refusing
	}
	return &UnansweredError{f.To.Instance, err}
}

// exchange sends a request, and returns the response once it begins.
func (g *Group) exchange(ctx context.Context, cancel context.CancelCauseFunc, r *http.Request, f Forward) (*http.Response, error) {
	out := g.outgoing(ctx, r, f)
	e := &Envelope{Addr: r.RemoteAddr, Moved: f.Moved, Unauthenticated: f.Unauthenticated}
	e.fill(f.Sender)
	if !f.Whole && len(r.Header["Authorization"]) > 0 && e.Identity != nil {
		e.Identity = &mcp.Identity{Principal: e.Identity.Principal} // the rest is verified there
	}
	if f.Body != nil {
		e.Digest = digest(f.Body)
	}
	g.seal(e, f.To, out)
	t := g.gates.of(g, f.To)
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.doubt(ctx, cancel)()
	return g.sendPast(pass{t: t}, out)
}

// outgoing returns the request to another replica.
func (g *Group) outgoing(ctx context.Context, r *http.Request, f Forward) *http.Request {
	out := &http.Request{
		Method: r.Method, URL: &url.URL{Scheme: g.scheme(f.To), Host: f.To.Addr, Path: f.Path, RawQuery: r.URL.RawQuery},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(r.Header)+1), Host: r.Host, ContentLength: r.ContentLength,
	}
	copyHeader(out.Header, r.Header, nil)
	if f.Upgrade {
		out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, r.Header["Upgrade"]
	}
	switch {
	case f.Body != nil:
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(f.Body)), int64(len(f.Body))
	case r.ContentLength != 0:
		out.Body = r.Body
	}
	return out.WithContext(ctx)
}

// doubt asks the replica whether it lives, if the response to a request does not begin within
// patience, and again until it does. If the replica gives no sign of life for silentFor, the
// request ends. The function that it returns ends that.
func (t *gate) doubt(ctx context.Context, cancel context.CancelCauseFunc) (trust func()) {
	ctx, end := context.WithCancel(ctx)
	done, begun := make(chan struct{}), time.Now()
	timer := time.AfterFunc(patience, func() {
		defer close(done)
		t.await(ctx, begun, cancel)
	})
	return func() {
		end()
		if !timer.Stop() {
			<-done
		}
	}
}

// await returns once ctx ends, or has a request end whose replica gives no sign of life. since
// is the last one.
func (t *gate) await(ctx context.Context, since time.Time, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(dialEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if t.answers(ctx, since) || t.isHindered() { // who can't ask knows nothing
			since = time.Now()
		}
		if time.Since(since) >= silentFor {
			cancel(errNoSign)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

var errNoSign = errors.New("it gives no sign of life")

// stream passes on an event stream. It returns while the stream goes on.
func (g *Group) stream(w http.ResponseWriter, r *http.Request, resp *http.Response, f Forward, cancel context.CancelCauseFunc) {
	f.Streams.Serve(w, r, f.WriteTimeout, func(ctx context.Context, res *downstream.Response) (rest func()) {
		return func() {
			defer cancel(nil)
			defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
			g.copyEvents(res, resp, f, cancel)
		}
	})
}

// copyEvents passes on events until the stream ends, or one of f.Ends ends. The client sees
// whether the stream ended in order.
func (g *Group) copyEvents(res *downstream.Response, resp *http.Response, f Forward, cancel context.CancelCauseFunc) {
	var ended atomic.Bool
	defer whenEnded(f.Ends, func(why error) {
		if !g.part(f, resp.Header.Get(Opening), why) {
			ended.Store(true)
			cancel(errEnded)
		}
	})()
	err := res.Copy(resp.Body)
	_ = resp.Body.Close() // it was read, or is not wanted any more
	if err != nil && !ended.Load() {
		res.Cut()
		return
	}
	_ = res.End() // an error means that the client has left
}

var errEnded = errors.New("streams end")

// relay passes on the body of a response.
func relay(w http.ResponseWriter, r *http.Request, resp *http.Response, timeout time.Duration) error {
	rc := http.NewResponseController(w)
	atOnce := resp.ContentLength < 0
	buf := transport.GetBuffer(int(min(max(resp.ContentLength, 4<<10), maxCopied)))
	defer transport.PutBuffer(buf)
	p := buf[:cap(buf)]
	for {
		n, err := resp.Body.Read(p)
		if n > 0 {
			_ = rc.SetWriteDeadline(time.Now().Add(timeout)) // a writer without deadlines (a test's) can't stall
			if _, err := w.Write(p[:n]); err != nil || atOnce && rc.Flush() != nil {
				return nil // the client has left
			}
		}
		switch {
		case err == io.EOF:
			_ = rc.Flush() // the client need not wait until its body is read, if it was not
			return nil
		case err != nil && r.Context().Err() != nil:
			return nil
		case err != nil:
			return ErrCut
		}
	}
}

func isEvents(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// copyHeader copies all headers but those that concern one connection. named is what the
// Connection header names. Nil is for requests, of which everything else is passed on: to their
// clients all replicas are one recipient, and what one of them reads the others do.
//
// Spec: RFC 9110, 7.6.1.
func copyHeader(dst, src http.Header, named []string) {
	for name, values := range src {
		if !isOfConnection(name, named) {
			dst[name] = values
		}
	}
}

// isOfConnection reports whether a header concerns one connection.
func isOfConnection(name string, named []string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", Header, Opening, unserved:
		return true
	}
	for _, line := range named {
		for one := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(one), name) {
				return true
			}
		}
	}
	return false
}
