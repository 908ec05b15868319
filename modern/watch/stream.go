package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// gracefulRest is the pause after a server has ended a stream: it may be reducing its load.
const gracefulRest = time.Second

// A sharedStream is one open listen stream.
type sharedStream struct {
	stream Stream
	since  time.Duration // on the book's clock
	topics []*topic      // its topics; used by the loop only, see state.on
	pace   pace          // of its reader

	// Of merges; used by the loop only.
	replaced   bool // a merge replaces it, or is about to
	ending     ending
	youngUntil time.Duration // when the streams that it replaces are closed, at the earliest
}

// take assigns topics to an acknowledged stream, and reads it.
func (w *watch) take(ctx context.Context, stream Stream, topics []*topic) {
	s := &sharedStream{stream: stream, since: w.book.Now(), topics: topics}
	w.streams = append(w.streams, s)
	w.book.Update(func() {
		for _, t := range topics {
			t.State.on, t.State.heard = append(t.State.on, s), false
		}
	})
	if w.opts.single { // with several streams, changes that were missed are reported at once
		single{w}.tellGapsLater(topics)
	}
	for _, t := range topics {
		accept(w.book, t, !w.opts.single)
	}
	// Ends with the stream, which ends with the loop.
	w.book.Go(func() { w.read(ctx, s) })
}

// accept grants t, which is on a stream; see Grant.
func accept(b *book, t *topic, tell bool) {
	t.State.omitted, t.State.tries = false, 0
	if t.Needed() {
		b.Grant(t, tell)
	}
}

// read publishes the changes that arrive on a stream, and reports its end.
func (w *watch) read(ctx context.Context, s *sharedStream) {
	defer s.stream.Close()
	brings := func(t *topic, ev fanout.Event) bool { return w.brings(s, t, ev) }
	throttle := upstream.Throttle{Busy: upstream.Never, Done: ctx.Done()}
	for {
		s.pace.begin()
		ev, err := s.stream.Next()
		s.pace.end()
		if err != nil {
			w.book.Do(ctx, func() { w.ended(s, err) })
			return
		}
		if !w.book.Hear(ev, brings) {
			throttle.Message(len(ev.Topic.URI))
		}
	}
}

// unload removes topics from a stream.
func (s *sharedStream) unload(b *book, topics []*topic) {
	b.Update(func() {
		for _, t := range topics {
			t.State.on = slices.DeleteFunc(t.State.on, func(on *sharedStream) bool { return on == s })
		}
	})
}

// detach removes a stream from the list.
func (w *watch) detach(s *sharedStream) {
	w.streams = slices.DeleteFunc(w.streams, func(o *sharedStream) bool { return o == s })
	s.unload(w.book, s.topics)
}

// drain closes a stream that has no reader.
func drain(stream Stream) {
	stream.Close()
	for err := error(nil); err == nil; {
		_, err = stream.Next()
	}
}

// ended handles a stream that has ended by itself. After the gap each of its topics gets
// one event (L2M-27).
func (w *watch) ended(s *sharedStream, err error) {
	if !slices.Contains(w.streams, s) {
		return // it was closed by this side
	}
	relied := w.reliedOn(s)
	w.detach(s)
	var lost []*topic
	for _, t := range s.topics {
		switch {
		case !t.Promised():
			w.Look(t)
		case !carried(t):
			t.Missed, t.State.omitted = true, false
			if t.State.place == none {
				lost = append(lost, t)
			}
		case err != ErrEnded || relied[t]: // messages may have been lost
			w.book.Tell(t)
		}
	}
	wait := w.reopenAfter(s, err)
	w.rest(lost, w.book.Now()+wait, resting)
	w.opts.Logger.Info("listen stream ended, its topics will be asked for again",
		"topics", len(lost), "open", (w.book.Now() - s.since).Round(time.Millisecond), "in", wait.Round(time.Millisecond), "reason", err)
}

// reopenAfter returns the pause before the topics of an ended stream are requested again.
func (w *watch) reopenAfter(s *sharedStream, err error) time.Duration {
	if err == errMoved {
		return 0
	}
	if w.book.Now()-s.since > retry.Max {
		w.broken = 0
	}
	wait := w.book.Pause(w.broken)
	w.broken++
	if err == ErrEnded {
		wait = max(wait, wake.Jitter(gracefulRest))
	}
	return wait
}

// rest makes topics wait until a time, in the place that says why.
func (w *watch) rest(topics []*topic, until time.Duration, why place) {
	for _, t := range topics {
		t.State.place = why
		w.book.At(t, until)
	}
}
