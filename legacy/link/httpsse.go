package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// An httpSSE is a session over HTTP+SSE, the transport of 2024-11-05. The server sends all
// its messages on one event stream, and the session ends with that stream. Each message to
// the server is a POST. One goroutine reads the stream, and one runs for each POST of a
// request: some servers answer the POST only after they have run the request.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
type httpSSE struct {
	alwaysListening
	to   *upstream.HTTP // the URL for POSTs
	post http.Header    // headers of each POST

	stream   *upstream.Reply
	rd       *sse.Reader             // of stream
	throttle *upstream.Throttle      // of what read reads and nobody needs
	stop     context.CancelCauseFunc // ends the stream
	live     context.Context
	done     chan struct{} // closed when read has returned
}

// OverSSE connects l over HTTP+SSE: it opens the event stream. ctx bounds that, until the
// server has sent the URL for POSTs.
func (l *Link) OverSSE(ctx context.Context, e *Endpoint) error {
	v := &httpSSE{alwaysListening: alwaysListening{l}, done: make(chan struct{})}
	v.live, v.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	late := context.AfterFunc(ctx, func() { v.stop(context.Cause(ctx)) })
	err := v.ask(e)
	if !late() && err == nil {
		err = context.Cause(ctx)
		v.stream.Close() // there was no event
	}
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		v.stop(err)
		return errors.New("its event stream did not say within timeouts.connect where to post")
	default:
		v.stop(err)
		return fmt.Errorf("opening its event stream: %w", transport.Cause(err))
	}
	l.carrier, l.Calls.ids = v, e.ids
	go v.read(context.WithoutCancel(ctx)) // ends with the stream, which close ends
	return nil
}

// ask opens the stream and reads its first event.
func (v *httpSSE) ask(e *Endpoint) error {
	post, get := e.headers("", "")
	reply, err := e.http.Get(v.live, nil, get)
	if err != nil {
		return err
	}
	v.post, v.stream = post, reply
	if reply.Status() == http.StatusOK && reply.IsStream() {
		v.throttle = &upstream.Throttle{Busy: v.l.Calls.Busy, Done: v.l.done}
		v.rd = sse.NewReader(reply.Body(), sse.ReaderOptions{MaxEventSize: v.l.opts.MaxMessage, Idle: v.throttle})
		v.to, err = v.endpoint(e.http)
	} else {
		v.stop(nil) // the stream may be of something else
		err = noStream(reply)
	}
	if err != nil {
		reply.Close() // it is not usable
	}
	return err
}

// noStream returns why a reply is not an event stream.
func noStream(reply *upstream.Reply) error {
	if reply.Status() == http.StatusOK {
		kind, _, _ := mime.ParseMediaType(reply.Header().Get("Content-Type")) // empty if there is none
		return &transport.KindError{Kind: kind}
	}
	status, _ := reply.Rejection()
	status.Note = "" // the note is about a message that was not sent
	return status
}

// endpoint waits for the event with the URL for POSTs.
func (v *httpSSE) endpoint(at *upstream.HTTP) (*upstream.HTTP, error) {
	for {
		ev, err := v.rd.Next()
		switch {
		case err != nil && v.live.Err() != nil:
			return nil, context.Cause(v.live)
		case err != nil:
			return nil, fmt.Errorf("waiting for its endpoint event: %w", streamEnded(err))
		case ev.Type == spec.EventEndpoint:
			return posting(at, string(ev.Data))
		}
	}
}

// posting resolves the reference in an endpoint event. The result must be of the same
// origin, because credentials and the client's messages are sent there.
func posting(at *upstream.HTTP, ref string) (*upstream.HTTP, error) {
	u, err := at.URL().Parse(strings.TrimSpace(ref))
	switch {
	case err != nil:
		return nil, errors.New("its endpoint event holds no URL") // which may hold a secret
	case originOf(u) != originOf(at.URL()):
		return nil, fmt.Errorf("its endpoint event names another origin, %s, to which nothing is sent; configure the URL by which the server knows itself", originOf(u))
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return at.At(u), nil
}

// originOf returns scheme, host and port in a canonical form.
//
// Spec: RFC 6454, 4.
func originOf(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// read passes every message to the session until the stream ends.
func (v *httpSSE) read(ctx context.Context) {
	defer close(v.done)
	for {
		ev, err := v.rd.Next()
		if err != nil {
			if large, ok := errors.AsType[*sse.TooLargeError](err); ok {
				v.l.opts.BeyondLimit(large.Limit)
			}
			v.l.lose(streamEnded(err))
			return
		}
		if size := len(ev.Data); ev.Type != "message" || !v.l.inbox.ReceiveText(ctx, v.rd.Take(), false) {
			v.throttle.Message(size)
		}
	}
}

// streamEnded returns the error for people when the event stream has ended.
func streamEnded(err error) error {
	var large *sse.TooLargeError
	switch {
	case err == io.EOF:
		return errors.New("its event stream ended")
	case errors.As(err, &large):
		return fmt.Errorf("it sent a message of more than %d bytes, which its event stream can't be read past; %s if that is normal for it", large.Limit, limits.UpstreamMessage.Raise())
	}
	return fmt.Errorf("its event stream broke: %w", transport.Cause(err))
}

// do implements carrier. While the POST runs, the response may already arrive on the
// stream, or input requests that must be answered first.
func (v *httpSSE) do(ctx context.Context, c *Call, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return &upstream.Failure{Cause: err, Fate: upstream.NotSent}
	}
	posting, stop := context.WithCancelCause(v.live)
	posted := make(chan error, 1)
	defer func() { v.letGo(posted, stop) }()
	if !v.l.Start(func() { posted <- v.request(posting, c, frame) }) { // ends with letGo
		return &upstream.Failure{Cause: mcp.ErrShutdown, Fate: upstream.NotSent, Lost: true}
	}
	for {
		select {
		case err := <-posted:
			if err != nil {
				return err
			}
			posted = nil
			c.wasTaken()
		case <-c.Wake:
			c.Owner.Deliver()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// letGo gives a POST whose response is no longer awaited some time to end by itself: if it
// were cut off, its connection would be lost. posted is nil if the POST has ended.
func (v *httpSSE) letGo(posted <-chan error, stop context.CancelCauseFunc) {
	if posted == nil || len(posted) > 0 || !v.l.Alive() {
		stop(nil)
		return
	}
	time.AfterFunc(sendTimeout, func() { stop(nil) })
}

// request posts the request c.
func (v *httpSSE) request(ctx context.Context, c *Call, frame []byte) error {
	reply, err := v.to.Post(ctx, nil, v.post, frame)
	if err != nil {
		return err
	}
	if reply.IsError() {
		err = v.l.rejected(ctx, c, reply, true)
		if err == nil {
			c.Cancel(nil) // the call is settled
		}
		return err
	}
	reply.Discard()
	return nil
}

// send implements carrier.
func (v *httpSSE) send(ctx context.Context, frame []byte) error {
	_, err := sendTo(ctx, v.to, v.post, frame) // its revision requires no status
	return err
}

// endedBy implements carrier: the URL for POSTs belongs to the session.
func (v *httpSSE) endedBy(err error) bool { return isNotFound(err) }

// explain implements carrier.
func (v *httpSSE) explain(err error) error { return err }

// close implements carrier. The end of the stream ends the session at the server.
func (v *httpSSE) close(context.Context) {
	v.stop(mcp.ErrShutdown)
	v.stream.Close() // nothing reads it any more
	<-v.done
}

var _ carrier = (*httpSSE)(nil)
