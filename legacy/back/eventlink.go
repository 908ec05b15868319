package back

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// An eventLink is a session over HTTP+SSE, the transport of 2024-11-05: all that the
// server says comes on one stream of events, whose end is the session's, and every
// message to it is a POST. It has a goroutine that reads the stream, and one for each
// POST of a request: some servers answer those only when they have run the request.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
type eventLink struct {
	s    *wireSession
	to   *endpoint   // where to post
	post http.Header // goes with each POST

	body   io.Closer // the stream's
	rd     *sse.Reader
	ration *transport.Throttle     // read's
	stop   context.CancelCauseFunc // ends the stream
	live   context.Context
	done   chan struct{} // closed when read has returned
}

// linkEvents opens the stream of events for s. ctx bounds the opening, which ends
// when the server has said where to post.
func (b *Back) linkEvents(ctx context.Context, s *wireSession) error {
	l := &eventLink{s: s, post: b.endpoint.header(acceptPost, "", ""), done: make(chan struct{})}
	l.live, l.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	late := context.AfterFunc(ctx, func() { l.stop(context.Cause(ctx)) })
	err := l.ask(b.endpoint)
	if !late() && err == nil {
		err = context.Cause(ctx)
		_ = l.body.Close() // nothing was said on it
	}
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		l.stop(err)
		return errors.New("its event stream did not say within timeouts.connect where to post")
	default:
		l.stop(err)
		return fmt.Errorf("opening its event stream: %w", cause(err))
	}
	s.link = l
	go l.read(context.WithoutCancel(ctx)) // ends with the stream, which close ends
	return nil
}

// ask asks for the stream and reads its first event.
func (l *eventLink) ask(at *endpoint) error {
	h := at.header(acceptGet, "", "")
	h.Del("Content-Type")
	resp, err := at.bare(l.live, http.MethodGet, h)
	if err != nil {
		return err
	}
	if kind := mediaType(resp.Header); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		l.stop(nil) // it may be a stream of something else
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return &statusError{code: resp.StatusCode, slash: transport.WantsSlash(at.url, resp)}
		}
		return &transport.KindError{Kind: kind}
	}
	l.body = resp.Body
	l.ration = l.s.ration()
	l.rd = sse.NewReader(resp.Body, sse.ReaderOptions{MaxEventSize: l.s.opts.MaxMessage, Idle: l.ration})
	if l.to, err = l.endpoint(at); err != nil {
		_ = resp.Body.Close() // nothing came of it
	}
	return err
}

// endpoint waits for the event that says where to post.
func (l *eventLink) endpoint(at *endpoint) (*endpoint, error) {
	for {
		ev, err := l.rd.Next()
		switch {
		case err != nil && l.live.Err() != nil:
			return nil, context.Cause(l.live)
		case err != nil:
			return nil, fmt.Errorf("waiting for its endpoint event: %w", streamEnded(err))
		case ev.Type == spec.EventEndpoint:
			return at.posting(string(ev.Data))
		}
	}
}

// posting returns the endpoint that a reference in an endpoint event names: another
// path of the same origin, since credentials and what clients say go there.
func (e *endpoint) posting(ref string) (*endpoint, error) {
	u, err := e.url.Parse(strings.TrimSpace(ref))
	switch {
	case err != nil:
		return nil, errors.New("its endpoint event holds no URL") // which may hold a secret
	case originOf(u) != originOf(e.url):
		return nil, fmt.Errorf("its endpoint event names another origin, %s, to which nothing is sent; configure the URL by which the server knows itself", originOf(u))
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return &endpoint{rt: e.rt, url: u, headers: e.headers}, nil
}

// originOf returns scheme, host and port, written in one way.
//
// Spec: RFC 6454, 4.
func originOf(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// read hands every message to the session until the stream ends.
func (l *eventLink) read(ctx context.Context) {
	defer close(l.done)
	for {
		ev, err := l.rd.Next()
		if err != nil {
			var large *sse.TooLargeError
			if errors.As(err, &large) {
				l.s.beyondLimit(large.Limit)
			}
			err = streamEnded(err)
			l.s.lost(err)
			return
		}
		if ev.Type == "message" {
			l.s.receiveRationed(ctx, l.ration, l.rd.Take(), nil, nil)
		} else {
			l.ration.Message(len(ev.Data))
		}
	}
}

// streamEnded names the end of a stream of events for people.
func streamEnded(err error) error {
	var large *sse.TooLargeError
	switch {
	case err == io.EOF:
		return errors.New("its event stream ended")
	case errors.As(err, &large):
		return fmt.Errorf("it sent a message of more than %d bytes, which its event stream can't be read past; %s if that is normal for it", large.Limit, limits.UpstreamMessage.Raise())
	}
	return fmt.Errorf("its event stream broke: %w", cause(err))
}

// exchange implements link. While the POST is under way the answer may already come
// on the stream, or questions without whose answers it does not end.
func (l *eventLink) exchange(ctx context.Context, c *wireCall, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return &failure{cause: err, fate: notSent}
	}
	posting, stop := context.WithCancelCause(l.live)
	posted := make(chan error, 1)
	defer func() { l.letGo(posted, stop) }()
	if !l.s.start(func() { posted <- l.request(posting, c, frame) }) { // ends with letGo
		return &failure{cause: mcp.ErrShutdown, fate: notSent, lost: true}
	}
	for {
		select {
		case err := <-posted:
			if err != nil {
				return err
			}
			posted = nil
			c.wasTaken()
		case <-c.wake:
			c.owner.deliver()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// letGo gives a POST that nobody waits for any more the time to end by itself: cut
// off, it would cost its connection. posted is nil if it has ended.
func (l *eventLink) letGo(posted <-chan error, stop context.CancelCauseFunc) {
	if posted == nil || len(posted) > 0 || !l.s.alive() {
		stop(nil)
		return
	}
	time.AfterFunc(goodbyeTimeout, func() { stop(nil) })
}

// request posts the request c.
func (l *eventLink) request(ctx context.Context, c *wireCall, frame []byte) error {
	resp, err := l.to.post(ctx, l.post, frame)
	switch {
	case err != nil && unsent(err):
		return &failure{cause: cause(err), fate: notSent}
	case err != nil:
		return &failure{cause: cause(err), fate: mayHaveRun, again: true}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		err = l.s.rejected(ctx, c, resp, true)
		if err == nil {
			c.cancel(errAnswered)
		}
		return err
	}
	discard(resp)
	return nil
}

// send implements link.
func (l *eventLink) send(ctx context.Context, frame []byte) error {
	return l.to.send(ctx, l.post, frame)
}

func (l *eventLink) negotiated(spec.Revision) {}

// A stream of events is open from the first.
func (l *eventLink) listen(context.Context)      {}
func (l *eventLink) initialized(context.Context) {}
func (l *eventLink) wakes() bool                 { return true }

func (l *eventLink) open() bool { return l.s.alive() }

// close implements link. A server learns of the session's end by the stream's.
func (l *eventLink) close(context.Context) {
	l.stop(mcp.ErrShutdown)
	_ = l.body.Close() // it is read no further
	<-l.done
}

// looksOlder reports whether a server refused initialize as one does that knows no
// Streamable HTTP.
//
// Spec: 2025-11-25, basic/transports, Backwards Compatibility.
func looksOlder(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// overHTTP has open make a session with a server at a URL: over Streamable HTTP, and where
// that is refused as by a server that is older, over HTTP+SSE. What it was found to
// speak is tried first from then on.
func (b *Back) overHTTP(open func(connector) (*session, error)) (*session, error) {
	if b.opts.Transport == TransportSSE {
		return open(b.linkEvents)
	}
	if b.older.Load() {
		s, err := open(b.linkEvents)
		var status *statusError
		if err == nil || !errors.As(err, &status) || !looksOlder(status.code) {
			return s, err
		}
		b.foundOlder(false) // another took its place
	}
	var l *httpLink
	s, err := open(func(_ context.Context, s *wireSession) error {
		l = newHTTPLink(s, b.endpoint)
		return nil
	})
	var no *relayRefusal // by a server that has read the request
	if err == nil || b.opts.Transport == TransportHTTP || !looksOlder(l.refusal) || errors.As(err, &no) {
		return s, err
	}
	s, older := open(b.linkEvents)
	if older != nil {
		return nil, fmt.Errorf("%w; it is no server of HTTP+SSE either: %v", err, older)
	}
	b.foundOlder(true)
	b.log.Info("server speaks HTTP+SSE, the transport of 2024-11-05", "reason", err)
	return s, nil
}

// foundOlder takes down whether the server speaks HTTP+SSE, whose stream never tells
// whose a question is.
func (b *Back) foundOlder(older bool) {
	b.older.Store(older)
	b.lanes.always.Store(older)
}

var _ link = (*eventLink)(nil)
