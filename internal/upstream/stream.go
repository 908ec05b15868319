package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// tailTimeout limits the wait for the end of a stream after its response, which allows
	// to use the connection again.
	tailTimeout = 100 * time.Millisecond
	// maxSlowTails is after how many such waits without success there are no more of them.
	maxSlowTails = 3
)

// A stream is the event stream of a Reply.
type stream struct {
	rd       *sse.Reader
	buf      []byte // the reader's first buffer; nil when a message may refer to it
	throttle Throttle
	last     int  // bytes of the last event; zero before the first
	useless  bool // it was not needed
	tail     bool // the text after the last event has been read
}

func (r *Reply) openStream() {
	st := &r.stream
	if r.call != nil {
		st.buf = transport.GetBuffer(r.expected())
	}
	st.throttle.Done, st.throttle.Busy = r.ctx.Done(), r.Busy
	st.rd = sse.NewReader(r.call.from(r.resp.Body), sse.ReaderOptions{MaxEventSize: r.h.opts.MaxMessage, Buffer: st.buf, Idle: &st.throttle})
}

// Useless says that the last message of Next was not needed. Such messages are read no
// faster than a [Throttle] allows.
func (r *Reply) Useless() { r.stream.useless = true }

// EventID returns the id of the last event, with which a stream can be resumed; empty if
// there is none.
func (r *Reply) EventID() string {
	if r.stream.rd == nil {
		return ""
	}
	return r.stream.rd.LastEventID()
}

// Retry returns the server's retry time for the stream, if it sent one.
func (r *Reply) Retry() (after time.Duration, ok bool) {
	if r.stream.rd == nil {
		return 0, false
	}
	return r.stream.rd.Retry()
}

func (r *Reply) nextOfStream() (*wire.Message, error) {
	st := &r.stream
	for {
		if st.useless {
			st.throttle.Message(st.last)
			st.useless = false
		}
		if st.last > 0 && r.call != nil && r.call.In != nil {
			r.call.In.Next()
		}
		ev, err := st.rd.Next()
		if err != nil {
			return r.ended(err)
		}
		st.last = len(ev.Data)
		m, err := r.h.opts.parse(ev.Data)
		switch {
		case err == nil:
			return r.got(r.kept(m))
		case isBatch(r.h.reading, ev.Data, err):
			r.batch = r.take()
			if m, err := r.nextOfBatch(); m != nil || err != nil {
				return m, err
			}
		case !r.skip(ev.Data, err):
			return nil, unreadable(err)
		}
		st.useless = true
	}
}

// kept returns m; if Keep is set, the caller owns it. The response aliases the reader's
// buffer, which does not change until the response is freed.
func (r *Reply) kept(m wire.Message) wire.Message {
	isResponse := m.Kind() == wire.Response && r.call != nil
	if isResponse {
		r.h.size.Store(int64(len(m.Text)))
	}
	if isResponse || !r.h.reading.Keep {
		return m
	}
	text := r.take()
	if &text[0] == &m.Text[0] {
		return m // the buffer is the caller's
	}
	m, _ = wire.Parse(text, r.h.opts.parsing) // it has been parsed before
	return m
}

// take returns the last event's data, which the caller owns.
func (r *Reply) take() []byte {
	r.stream.buf = nil
	return r.stream.rd.Take()
}

// ended handles the end of the stream before the response.
func (r *Reply) ended(err error) (*wire.Message, error) {
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if rest := bytes.Clone(r.stream.rd.Rest()); r.call != nil && len(rest) > 0 && !r.stream.tail {
		// Some servers append a late error as plain JSON, without an event.
		r.stream.tail = true
		if m, err := r.h.opts.parse(rest); err == nil && m.Kind() == wire.Response && r.call.Is(m.ID) {
			r.h.opts.Quirks.Met(quirks.UnframedAnswer, "")
			return r.got(m)
		}
	}
	var large *sse.TooLargeError
	switch {
	case errors.As(err, &large):
		return nil, r.broken(&transport.TooLongError{Limit: large.Limit})
	case err == io.EOF:
		return nil, errEnd
	}
	return nil, r.broken(err)
}

// finish reads what follows the response. What is in its batch has arrived with it. A stream that is
// read to its end leaves a connection that can be used again. It is called when the response is not
// needed any more.
func (r *Reply) finish() {
	for r.batch != nil {
		m, err := r.nextOfBatch()
		switch {
		case err != nil:
			return
		case m != nil:
			r.follow(m)
		}
	}
	patience := r.patience()
	if r.stream.rd == nil || patience == 0 || r.ctx.Err() != nil {
		return
	}
	t := time.AfterFunc(patience, r.cancel)
	defer t.Stop()
	for {
		m, err := r.next()
		switch {
		case err == errEnd:
			r.h.slowTails.Store(0) // it was read to its end
			return
		case err != nil:
			r.h.slowTails.Add(1)
			return
		}
		r.follow(m)
	}
}

// follow passes on a message that follows the response.
func (r *Reply) follow(m *wire.Message) {
	if r.After != nil {
		r.After(m)
		return
	}
	r.Useless()
	r.h.opts.Drop("message after the answer")
}

// patience returns how long to wait for the end of the stream.
func (r *Reply) patience() time.Duration {
	switch {
	case r.call == nil:
		return 0
	case r.call.Patience > 0:
		return r.call.Patience
	case r.h.slowTails.Load() >= maxSlowTails:
		return 0
	}
	return tailTimeout
}
