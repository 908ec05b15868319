package eventstream

import (
	"context"
	"errors"
	"os"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A Writer writes one event stream to one HTTP response. It belongs to the turns of the response,
// which are sent to when there may be something to write, or the response has to end.
type Writer struct {
	stream  *Stream
	res     *downstream.Response
	changes *Changes // go to the stream; nil for that of a call
	at      uint64   // the last event that was written, or that the client had before
	missed  bool     // set by Attach
	over    error    // why the response has to end; guarded by Streams.mu
}

// Missed reports whether events after the one that the client had were no longer stored.
func (w *Writer) Missed() bool { return w.missed }

var (
	// errReplaced is why a response ends if another connection took over its stream.
	errReplaced = errors.New("another connection took the stream")
	// ErrEnding is why GET streams end before the rest of the gateway.
	ErrEnding = errors.New("streams are ending")
	// ErrNoChanges is why a GET stream ends if no more changes will come.
	ErrNoChanges = errors.New("no more changes will come")
)

// Changes are where the changes come from that go to a stream.
type Changes struct {
	Mail      *fanout.Mailbox
	Append    func(dst []byte, ev fanout.Event) []byte // appends the notification of a change, or nothing
	Delivered func()                                   // counts it
}

// Attach makes res the stream's response, from after the event with number from. The
// previous response ends. There is only one GET stream at a time: it gets what the one before has
// not begun to write.
func (st *Stream) Attach(res *downstream.Response, from uint64, changes *Changes) *Writer {
	s := st.s
	w := &Writer{stream: st, res: res, changes: changes}
	res.KeepAlive(s.opts.KeepAlive)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.at = min(from, st.next-1)
	w.missed = w.at+1 < st.next && (len(st.events) == 0 || st.events[0].n > w.at+1)
	if st.id.IsZero() {
		s.current.replaceLocked()
		st.inheritLocked(s.current)
		s.current = st
	}
	st.replaceLocked()
	st.writer, st.expected = w, false
	st.attendLocked()
	st.written, st.taken = w.at, w.at
	w.res.Turns().Send() // there may be something already
	if changes != nil {
		changes.Mail.Notify(w.res.Turns())
	}
	return w
}

// replaceLocked ends the stream's response, if there is one.
func (st *Stream) replaceLocked() {
	if st != nil && st.writer != nil {
		w := st.writer
		st.writer = nil
		w.res.Turns().Send()
	}
}

// Until ends the response with the credential of its request. The client resumes with
// another one, without losing events.
func (w *Writer) Until(id *mcp.Identity) (forget func()) {
	return w.stream.s.opts.Until(id, w.end)
}

// end ends the response with a reason.
func (w *Writer) end(reason error) {
	w.stream.s.mu.Lock()
	w.over = reason
	w.stream.s.mu.Unlock()
	w.res.Turns().Send()
}

// Close ends the response. err is the reason. The stream continues; but if the client does
// not read, the session ends. A response that was replaced says nothing of that: the client may
// read the next one, because the connection of this one failed.
func (w *Writer) Close(err error) {
	st := w.stream
	st.s.mu.Lock()
	carries := st.writer == w
	if carries {
		st.writer = nil
		st.attendLocked()
		if w.changes != nil {
			w.changes.Mail.Notify(nil)
		}
	}
	st.s.signalRoomLocked()
	st.s.mu.Unlock()
	if !Stuck(err) {
		_ = w.res.End() // an error means that the client has left
		return
	}
	w.res.StopKeepAlive()
	if carries {
		st.s.stuck()
	}
}

// Run has Turn called until the response is over, and returns the reason.
func (w *Writer) Run(ctx context.Context) (err error) {
	w.res.Turns().Run(ctx, func() (over bool) {
		over, err = w.Turn(ctx)
		return over
	})
	return err
}

// Turn writes what there is to write. It reports whether the response is over: the stream is done,
// another response has taken it over, or err says why else. If the client has left, the call continues.
func (w *Writer) Turn(ctx context.Context) (over bool, err error) {
	if done, err := w.drain(); done || err != nil {
		return true, err
	}
	if err := w.stopped(); err != nil {
		return true, err
	}
	if ctx.Err() != nil { // changes are for the next response
		return true, w.res.Cause(ctx)
	}
	if w.changes != nil {
		if err := w.writeChanges(); err != nil {
			return true, err
		}
		if wake.Closed(w.stream.s.opts.Ending) {
			return true, ErrEnding
		}
	}
	return false, nil
}

// drain writes all events. It reports whether the stream is done.
func (w *Writer) drain() (done bool, err error) {
	for {
		ev, ok, done, err := w.next()
		if err != nil || !ok {
			return done, err
		}
		if err := w.res.Event("message", w.stream.eventID(ev.n), ev.text); err != nil {
			return false, err
		}
		w.wrote(ev.n)
	}
}

// next returns the next event; if there is none, whether the stream is done. For a
// response that was removed it returns an error.
func (w *Writer) next() (ev event, ok, done bool, err error) {
	st := w.stream
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	for _, ev := range st.events {
		if ev.n <= w.at {
			continue
		}
		if err := w.stoppedLocked(); err != nil {
			return event{}, false, false, err
		}
		st.taken = max(st.taken, ev.n)
		return ev, true, false, nil
	}
	switch {
	case st.done && st.lost && w.at < st.next-1:
		return event{n: st.next - 1, text: st.evictedResponse()}, true, false, nil
	case st.done:
		return event{}, false, true, nil
	}
	return event{}, false, false, nil
}

// stoppedLocked returns why the response has to end, or nil.
func (w *Writer) stoppedLocked() error {
	if w.stream.writer != w {
		return errReplaced
	}
	return w.over
}

// wrote records that an event was written, unless the stream has another response.
func (w *Writer) wrote(n uint64) {
	w.at = n
	st := w.stream
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.writer == w {
		st.written = n
	}
	st.s.signalRoomLocked()
}

// writeChanges puts the pending changes on the stream.
func (w *Writer) writeChanges() error {
	for {
		ev, ok, err := w.nextChange()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		msg := w.changes.Append(nil, ev)
		if len(msg) == 0 {
			continue // the client does not want it
		}
		if err := w.change(msg); err != nil {
			w.changes.Mail.Put(ev) // for the next response; the client may get it twice
			return err
		}
		w.changes.Delivered()
	}
	if _, ended := w.changes.Mail.Ended(); ended {
		return ErrNoChanges
	}
	return nil
}

// nextChange takes a pending change, unless the response has to end: what is pending once another
// response carries the changes is for that one.
func (w *Writer) nextChange() (ev fanout.Event, ok bool, err error) {
	w.stream.s.mu.Lock()
	defer w.stream.s.mu.Unlock()
	if err := w.stoppedLocked(); err != nil {
		return ev, false, err
	}
	ev, ok = w.changes.Mail.Next()
	return ev, ok, nil
}

// change writes the notification of a change. It does not wait for room, which only this response
// can make.
func (w *Writer) change(msg []byte) error {
	w.stream.s.mu.Lock()
	if err := w.stream.putAndUnlock(msg, false); err != nil {
		return err
	}
	_, err := w.drain()
	return err
}

func (w *Writer) stopped() error {
	w.stream.s.mu.Lock()
	defer w.stream.s.mu.Unlock()
	return w.stoppedLocked()
}

// Stuck reports whether a response ended because its client does not read.
func Stuck(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
