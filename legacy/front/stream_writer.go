package front

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/sse"
)

// A streamWriter is a connection that carries one event stream. It belongs to the
// goroutine of its HTTP request.
type streamWriter struct {
	session *session
	w       http.ResponseWriter
	rc      *http.ResponseController
	out     *sse.Writer
	taken   chan struct{} // closed when another connection takes the stream
	at      uint64        // the last event written, or had by the client before
}

var (
	// errReplaced is why a connection ends whose stream another one took.
	errReplaced = errors.New("another connection took the stream")
	// errEnding is why GET streams end before the rest of the gateway.
	errEnding = errors.New("streams are ending")
	// errNoChanges is why a GET stream ends when no more changes will come.
	errNoChanges = errors.New("no more changes will come")
	// errLostUpstream is why a stream that is a session ends with the server's.
	errLostUpstream = errors.New("the server ended the session")
)

func (s *session) newStreamWriter(w http.ResponseWriter) *streamWriter {
	return &streamWriter{session: s, w: w, rc: http.NewResponseController(w), out: sse.NewWriter(w), taken: make(chan struct{})}
}

// open sends headers and a comment at once: some clients wait for them.
func (w *streamWriter) open() error {
	h := w.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.w.WriteHeader(http.StatusOK)
	return w.comment()
}

func (w *streamWriter) comment() error {
	w.deadline()
	if err := w.out.Comment(""); err != nil {
		return err
	}
	return w.rc.Flush()
}

func (w *streamWriter) deadline() {
	// A writer without deadlines (a test's recorder) can't stall either.
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.session.front.opts.WriteTimeout))
}

// event writes one event with its id.
func (w *streamWriter) event(st *eventStream, ev event) error {
	w.deadline()
	if err := w.out.Event("message", st.eventID(ev.n), ev.text); err != nil {
		return err
	}
	return w.rc.Flush()
}

// attach makes wr the stream's connection, from after the event numbered from. The
// one before ends. Of GET streams there is one at a time.
func (st *eventStream) attach(wr *streamWriter, from uint64) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.id.IsZero() {
		s.current.replaceLocked()
		s.current = st
	}
	st.replaceLocked()
	st.writer, st.coming = wr, false
	st.written = min(from, st.next-1)
	wr.at = st.written
}

// replaceLocked ends the stream's connection, if there is one.
func (st *eventStream) replaceLocked() {
	if st != nil && st.writer != nil {
		close(st.writer.taken)
		st.writer = nil
	}
}

func (st *eventStream) detach(wr *streamWriter) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.writer == wr {
		st.writer = nil
	}
	st.s.signalRoomLocked()
}

// after returns the event that follows the one numbered at, or what to wait for. done
// says that there will be none, lost that the response has gone.
func (st *eventStream) after(at uint64) (ev event, ok, done, lost bool, wake <-chan struct{}) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	for _, ev := range st.events {
		if ev.n > at {
			return ev, true, false, false, nil
		}
	}
	return event{}, false, st.done, st.lost && at < st.next-1, st.wake
}

// wrote takes down that an event is out. A connection that was replaced meanwhile
// says nothing about the stream any more.
func (st *eventStream) wrote(wr *streamWriter, n uint64) {
	wr.at = n
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.writer == wr {
		st.written = n
	}
	st.s.signalRoomLocked()
}

func (s *streams) signalRoomLocked() {
	close(s.room)
	s.room = make(chan struct{})
}

// run writes the stream until it is done, another connection takes it, or the
// client leaves, which is no concern of the call's. changes, if not nil, are told
// on it too.
func (w *streamWriter) run(ctx context.Context, st *eventStream, changes *subscriptions) (err error) {
	defer func() {
		if !stuck(err) {
			w.deadline() // net/http writes the end of the response, maybe long after the last event
		}
	}()
	tick := time.NewTicker(w.session.front.opts.KeepAlive)
	defer tick.Stop()
	var ready <-chan struct{}
	var ending <-chan struct{}
	if changes != nil {
		ready, ending = changes.mail.Ready(), w.session.front.ending
	}
	for {
		wake, err := w.drain(st)
		if err != nil || wake == nil {
			return err
		}
		select {
		case <-wake:
		case <-ready:
			if err := w.writeChanges(st, changes); err != nil {
				return err
			}
			if _, ended := changes.mail.Ended(); ended {
				return errNoChanges
			}
		case <-tick.C:
			if err := w.comment(); err != nil {
				return err
			}
		case <-w.taken:
			return errReplaced
		case <-ending:
			return errEnding
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drain writes what is there, and returns what to wait for: nil if the stream is
// done.
func (w *streamWriter) drain(st *eventStream) (<-chan struct{}, error) {
	for {
		ev, ok, done, lost, wake := st.after(w.at)
		switch {
		case ok && w.replaced():
			return nil, errReplaced
		case ok:
			if err := w.event(st, ev); err != nil {
				return nil, err
			}
			st.wrote(w, ev.n)
		case done && lost:
			return nil, w.event(st, event{n: st.lastEvent(), text: st.evicted()})
		case done:
			return nil, nil
		default:
			return wake, nil
		}
	}
}

func (st *eventStream) lastEvent() uint64 {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.next - 1
}

// writeChanges puts the pending changes on the stream.
func (w *streamWriter) writeChanges(st *eventStream, changes *subscriptions) error {
	for {
		if w.replaced() { // they are for the one that took the stream
			return errReplaced
		}
		ev, ok := changes.mail.Next()
		if !ok {
			return nil
		}
		if err := st.put(context.Background(), appendChange(nil, ev), false); err != nil {
			changes.mail.Put(ev) // for the next connection
			return err
		}
		if _, err := w.drain(st); err != nil {
			changes.mail.Put(ev) // for the next connection; it may hear it twice
			return err
		}
		w.session.front.opts.Metrics.Delivered(1)
	}
}

func (w *streamWriter) replaced() bool {
	select {
	case <-w.taken:
		return true
	default:
		return false
	}
}

// stuck reports whether a connection ended because its client does not read.
func stuck(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
