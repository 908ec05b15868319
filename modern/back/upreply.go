package back

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// tailTimeout bounds the wait for the end of a stream whose answer came: its
	// connection can be used again then.
	tailTimeout = 100 * time.Millisecond
	// maxSlowTails is how many waits in vain it takes to stop waiting.
	maxSlowTails = 3
)

var errUnanswered = errors.New("it ended the response without an answer")

// A replyStream is a stream that answers a request.
type replyStream struct {
	l    *httpLink
	c    *upcall
	end  func() // closes the response, if it is still open
	body io.ReadCloser
	rd   *sse.Reader
	buf  []byte // the reader's first; nil once it may have gone with an event

	ration transport.Throttle
	last   int // bytes of the message that next returned last
}

func (l *httpLink) newReplyStream(end func(), c *upcall, resp *http.Response) *replyStream {
	buf := transport.GetBuffer(l.expect(resp))
	st := &replyStream{l: l, c: c, end: end, body: resp.Body, buf: buf}
	st.rd = sse.NewReader(c.from(resp.Body), sse.ReaderOptions{MaxEventSize: l.opts.MaxMessage, Buffer: buf, Idle: &st.ration})
	return st
}

// readStream reads a request's stream until the answer or its end.
func (l *httpLink) readStream(ctx context.Context, end func(), c *upcall, resp *http.Response) (answer, error) {
	st := l.newReplyStream(end, c, resp)
	st.ration.Done = ctx.Done()
	for {
		m, err := st.next()
		if err != nil {
			return st.ended(ctx, err)
		}
		c.heard()
		switch {
		case m.Kind() == wire.Response && (c.is(m.ID) || m.ID.IsZero()):
			l.size.Store(int64(len(m.Result)))
			// The answer aliases the reader's buffer, which stands still until
			// finish.
			return answerOf(m, func() { st.finish(ctx) }), nil
		case m.Kind() == wire.Notification:
			l.tell(ctx, c, m)
		case m.Kind() == wire.Response:
			defer st.close()
			return answer{}, l.foreign(resp, m.ID)
		default:
			l.drop("foreign message", c)
		}
	}
}

// tell hands a notification on a request's own stream to its caller, who so slows
// the server down if it is slow itself.
func (l *httpLink) tell(ctx context.Context, c *upcall, m *wire.Message) {
	if m.Method == spec.NotifyProgress && !c.listens() {
		if id, ok := tokenOf(m); !ok || id != c.id {
			l.drop("foreign progress", c)
			return
		}
	}
	if n, ok := c.note(m); ok {
		c.pass(ctx, n)
		if !c.listens() || m.Method != spec.NotifyToolsListChanged {
			return
		}
	}
	if !c.listens() {
		c.useless++
	}
	l.news(c, m)
}

func (l *httpLink) drop(what string, c *upcall) {
	c.useless++
	l.opts.Metrics.Dropped(l.opts.Name, what)
	l.opts.Logger.Debug("skipping message of server", "what", what, "method", c.method)
}

// next returns the next message of the stream, which is valid until the call after.
// What can't be read is logged and skipped, unless it is the answer.
func (st *replyStream) next() (*wire.Message, error) {
	if st.c.useless > 0 {
		st.ration.Message(st.last)
		st.c.useless = 0
	}
	for {
		if st.last > 0 && st.c.of != nil {
			st.c.of.in.Next()
		}
		ev, err := st.rd.Next()
		if err != nil {
			return nil, err
		}
		st.last = len(ev.Data)
		m, err := wire.Parse(ev.Data, reading)
		if err == nil {
			return &m, nil
		}
		if id, method := wire.Salvage(ev.Data); method == "" && st.c.is(id) {
			return nil, st.l.unreadable(err)
		}
		st.ration.Message(st.last)
		st.l.opts.Metrics.Dropped(st.l.opts.Name, "unreadable")
		st.l.odd.Warn(st.l.opts.Logger, "skipping unreadable message of server", "error", err)
	}
}

// ended takes in the end of the stream before the answer.
func (st *replyStream) ended(ctx context.Context, err error) (answer, error) {
	defer st.close()
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	if f := asFailure(err); f != nil {
		return answer{}, f
	}
	// Some servers append an error that came late as it is, without framing.
	rest := bytes.Clone(st.rd.Rest())
	if m, err := wire.Parse(rest, reading); err == nil && m.Kind() == wire.Response && st.c.is(m.ID) {
		return answerOf(&m, nil), nil
	}
	var large *sse.TooLargeError
	var short *mcp.ShortageError
	switch {
	case errors.As(err, &large):
		return answer{}, st.l.readFailure(ctx, &transport.TooLongError{Limit: large.Limit})
	case errors.As(err, &short):
		return answer{}, short
	case err == io.EOF:
		return answer{}, &failure{cause: errUnanswered, fate: mayHaveRun, again: true}
	}
	return answer{}, st.l.readFailure(ctx, err)
}

// finish reads what follows the answer: a stream read to its end leaves a
// connection that can be used again. It is called when the answer is not needed
// any more.
func (st *replyStream) finish(ctx context.Context) {
	defer st.close()
	if ctx.Err() != nil || st.l.slowTails.Load() >= maxSlowTails {
		return
	}
	t := time.AfterFunc(tailTimeout, st.end)
	defer t.Stop()
	for {
		if _, err := st.rd.Next(); err == io.EOF {
			st.l.slowTails.Store(0)
			return
		} else if err != nil {
			st.l.slowTails.Add(1)
			return
		}
		st.l.drop("message after the answer", st.c)
	}
}

func (st *replyStream) close() {
	st.end()
	_ = st.body.Close() // read as far as anybody wants
	transport.PutBuffer(st.buf)
	st.buf = nil
}
