package back

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// defaultRetry is the wait before a stream is resumed whose server named none.
	defaultRetry = time.Second
	// tailTimeout bounds the wait for the end of a stream whose answer came: its
	// connection can be used again then.
	tailTimeout = 100 * time.Millisecond
	// relayTail is as long under a relay, where nobody waits for the connection.
	relayTail = time.Second
	// maxSlowTails is how many waits in vain it takes to stop waiting.
	maxSlowTails = 3
)

// A position is where a call's stream stands.
type position struct {
	settled bool   // no need to resume
	lastID  string // resume behind this event; empty: impossible
	retry   time.Duration
	useful  bool  // see comeback.after
	cause   error // why the stream ended; nil for its regular end
}

// A replyStream is a stream that answers a request, or resumes one that does.
type replyStream struct {
	l    *httpLink
	c    *wireCall
	body io.ReadCloser
	rd   *sse.Reader
	from time.Time // when its headers had come
	used bool      // a message came on it

	ration transport.Throttle // always as if somebody waits
	buf    []byte             // the reader's first; nil once it may have gone with an event
}

// readStream reads a call's stream until the answer or its end.
func (l *httpLink) readStream(ctx context.Context, c *wireCall, resp *http.Response) (position, error) {
	buf := transport.GetBuffer(l.expect(resp))
	st := &replyStream{l: l, c: c, body: resp.Body, buf: buf, from: time.Now()}
	st.ration.Done = ctx.Done()
	st.rd = sse.NewReader(c.in.From(resp.Body), sse.ReaderOptions{MaxEventSize: l.s.opts.MaxMessage, Buffer: buf, Idle: &st.ration})
	for {
		ev, err := st.rd.Next()
		if err != nil {
			return st.ended(ctx, err)
		}
		m, err := wire.Parse(ev.Data, reading)
		isAnswer := err == nil && m.Kind() == wire.Response
		if isAnswer && c.is(m.ID) {
			l.e.size.Store(int64(len(ev.Data)))
			// The answer aliases the reader's buffer, which stands still until
			// finish.
			if !c.settle(answerOf(&m, func() { st.finish(ctx) })) {
				st.close()
			}
			return position{settled: true}, nil
		}
		if isAnswer && !m.ID.IsZero() {
			st.close()
			return position{}, l.foreign(resp, m.ID)
		}
		st.used = true
		c.in.Next()
		l.s.receiveRationed(ctx, &st.ration, st.take(), c, nil)
		if ctx.Err() != nil { // answered by a batch, say
			st.close()
			return position{}, context.Cause(ctx)
		}
	}
}

// ended takes in the end of the stream before the answer.
func (st *replyStream) ended(ctx context.Context, err error) (position, error) {
	defer st.close()
	if ctx.Err() != nil {
		return position{}, context.Cause(ctx)
	}
	// Some servers append an answer that came late as it is, without framing.
	rest := bytes.Clone(st.rd.Rest())
	if m, err := wire.Parse(rest, reading); err == nil && m.Kind() == wire.Response && st.c.is(m.ID) {
		st.c.settle(answerOf(&m, nil))
		return position{settled: true}, nil
	}
	var short *mcp.ShortageError
	if errors.As(err, &short) {
		return position{}, short
	}
	var large *sse.TooLargeError
	if errors.As(err, &large) {
		st.l.s.beyondLimit(large.Limit)
		return position{}, &failure{cause: &transport.TooLongError{Limit: large.Limit}, fate: mayHaveRun}
	}
	at := position{lastID: st.rd.LastEventID(), retry: defaultRetry, useful: st.used || time.Since(st.from) >= steady}
	if d, ok := st.rd.Retry(); ok {
		at.retry = d
	}
	if err != io.EOF {
		at.cause = cause(err)
	}
	return at, nil
}

// finish reads what follows the answer: changes may, and a stream read to its
// end leaves a connection that can be used again. It is called when the answer
// is not needed any more.
func (st *replyStream) finish(ctx context.Context) {
	defer st.close()
	patience := tailTimeout
	if st.c.passed {
		patience = relayTail
	} else if st.l.slowTails.Load() >= maxSlowTails {
		return
	}
	if ctx.Err() != nil {
		return
	}
	t := time.AfterFunc(patience, func() { st.c.cancel(nil) })
	defer t.Stop()
	for {
		if _, err := st.rd.Next(); err == io.EOF {
			st.l.slowTails.Store(0)
			return
		} else if err != nil {
			st.l.slowTails.Add(1)
			return
		}
		st.l.s.receiveText(ctx, st.take(), st.c, nil)
	}
}

// take returns the last event's data for keeps: a question in it outlives the
// stream.
func (st *replyStream) take() []byte {
	st.buf = nil
	return st.rd.Take()
}

func (st *replyStream) close() {
	_ = st.body.Close() // read as far as anybody wants
	transport.PutBuffer(st.buf)
}

// resume goes on with a stream that ended at a position before the answer, again
// and again, until the answer or the end of ctx. The request is not sent anew.
//
// Spec: 2025-11-25, basic/transports, Resumability and Redelivery.
func (l *httpLink) resume(ctx context.Context, c *wireCall, at position) error {
	var again comeback
	for pause := again.after(at.retry, at.useful); ; {
		if at.lastID == "" {
			return unanswered(at)
		}
		if err := backoff.Wait(ctx, backoff.Jitter(pause)); err != nil {
			return err
		}
		next, err := l.reopen(ctx, c, at)
		if err != nil || next.settled {
			return err
		}
		if next.cause != nil && next.lastID == at.lastID {
			pause = streamRetries.Next(pause)
		} else {
			pause = again.after(next.retry, next.useful)
		}
		at = next
	}
}

// unanswered is the failure of a stream that can't be resumed.
func unanswered(at position) error {
	err := at.cause
	if err == nil {
		err = errors.New("it ended the response without an answer")
	}
	return &failure{cause: err, fate: mayHaveRun, again: true}
}

// reopen asks for a stream behind a position and reads it. A server that can't
// be reached leaves the position where it was.
func (l *httpLink) reopen(ctx context.Context, c *wireCall, at position) (position, error) {
	resp, err := l.e.bare(ctx, http.MethodGet, l.getAfter(at.lastID))
	switch {
	case ctx.Err() != nil:
		if err == nil {
			discard(resp)
		}
		return at, context.Cause(ctx)
	case err != nil:
		at.cause = cause(err)
		return at, nil
	case resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream":
		next, err := l.readStream(ctx, c, resp)
		if next.lastID == "" {
			next.lastID = at.lastID // it said nothing new
		}
		return next, err
	}
	discard(resp)
	status := &statusError{code: resp.StatusCode, note: "resuming the response"}
	switch {
	case resp.StatusCode >= 500:
		at.cause = status
		return at, nil
	case resp.StatusCode == http.StatusNotFound && l.id() != "" && l.s.isGone(ctx, c.method):
		l.s.fail(status)
		return at, &failure{cause: status, fate: mayHaveRun, lost: true}
	}
	return at, &failure{cause: status, fate: mayHaveRun, again: true}
}

// getAfter returns the headers of a GET that resumes behind an event.
func (l *httpLink) getAfter(lastID string) http.Header {
	h := l.names.Load().get
	if lastID == "" {
		return h
	}
	h = h.Clone()
	h.Set(spec.HeaderLastEventID, lastID)
	return h
}
