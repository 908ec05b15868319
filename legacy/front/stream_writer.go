package front

import (
	"context"
	"errors"
	"os"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
)

// A streamWriter writes one event stream to one HTTP response. It belongs to the
// goroutine of the response.
type streamWriter struct {
	session *session
	res     *downstream.Response
	taken   chan struct{} // closed when another response takes the stream
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

// writeStream writes the stream to res, from after the event numbered from, until the
// stream is done, another response takes it, or the client leaves, which is no concern
// of the call's. changes, if not nil, are told on it too.
func (s *session) writeStream(ctx context.Context, res *downstream.Response, st *eventStream, from uint64, changes *subscriptions) error {
	w := &streamWriter{session: s, res: res, taken: make(chan struct{})}
	st.attach(w, from)
	defer st.detach(w)
	err := w.run(ctx, st, changes)
	if stuck(err) {
		s.front.sessions.end(s, endedStuck)
		return err
	}
	_ = res.End() // the client has gone if it fails
	return err
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

func (w *streamWriter) run(ctx context.Context, st *eventStream, changes *subscriptions) error {
	defer w.res.KeepAlive(w.session.front.opts.KeepAlive)()
	var ready, ending <-chan struct{}
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
		case <-w.taken:
			return errReplaced
		case <-ending:
			return errEnding
		case <-ctx.Done():
			return w.res.Cause(ctx)
		}
	}
}

// event writes one event with its id.
func (w *streamWriter) event(st *eventStream, ev event) error {
	return w.res.Event("message", st.eventID(ev.n), ev.text)
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
