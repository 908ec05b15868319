package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// gracefulRest is how long a server is left alone that ended a stream: it may be
// shedding load.
const gracefulRest = time.Second

// A sharedStream is one open listen stream.
type sharedStream struct {
	stream Stream
	since  time.Duration // on the watch's clock
	topics []*tracked    // that it carries; the loop's own, see tracked.on

	// Of merges; the loop's own.
	replaced   bool          // one makes it superfluous, or is about to
	until      time.Duration // it is closed then; 0: it is not
	youngUntil time.Duration // the streams that it replaces are
}

type streamEnd struct {
	s   *sharedStream
	err error
}

// take has an acknowledged stream carry topics, and reads it.
func (w *watch) take(ctx context.Context, stream Stream, topics []*tracked) {
	s := &sharedStream{stream: stream, since: w.now(), topics: topics}
	w.streams = append(w.streams, s)
	w.mu.Lock()
	for _, e := range topics {
		e.on = append(e.on, s)
	}
	w.mu.Unlock()
	w.owedOn(topics)
	for _, e := range topics {
		w.accept(e)
	}
	// Ends with the stream, which ends with the loop.
	w.workers.Go(func() { w.read(ctx, s) })
}

// read publishes what comes on a stream, and reports its end.
func (w *watch) read(ctx context.Context, s *sharedStream) {
	defer s.stream.Close()
	ration := transport.Throttle{Busy: transport.Never, Done: ctx.Done()}
	for {
		ev, err := s.stream.Next()
		if err != nil {
			select {
			case w.ends <- streamEnd{s, err}:
			case <-ctx.Done():
			}
			return
		}
		if !w.changed(s, ev) {
			ration.Message(len(ev.Topic.URI))
		}
	}
}

// unload takes topics off a stream.
func (w *watch) unload(s *sharedStream, topics []*tracked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range topics {
		e.on = slices.DeleteFunc(e.on, func(on *sharedStream) bool { return on == s })
	}
}

// detach takes a stream out of use.
func (w *watch) detach(s *sharedStream) {
	w.streams = slices.DeleteFunc(w.streams, func(o *sharedStream) bool { return o == s })
	w.unload(s, s.topics)
}

// dismiss closes a stream. Its reader ends then.
func (w *watch) dismiss(s *sharedStream) {
	w.workers.Go(s.stream.Close)
}

// exhaust closes a stream that nobody reads.
func exhaust(stream Stream) {
	stream.Close()
	for err := error(nil); err == nil; {
		_, err = stream.Next()
	}
}

// streamEnded looks after the topics of a stream that has ended by itself. After the
// gap they get one event each (L2M-27).
func (w *watch) streamEnded(end streamEnd) {
	s := end.s
	if !slices.Contains(w.streams, s) {
		return // it was closed from here
	}
	w.detach(s)
	var lost []*tracked
	for _, e := range s.topics {
		switch {
		case !e.promised:
		case len(e.on) == 0:
			e.owed, e.omitted = true, false
			if e.place == plNone {
				lost = append(lost, e)
			}
		case end.err != ErrEnded: // what was on its way is lost
			w.cue(e)
		}
		if !e.promised {
			w.look(e)
		}
	}
	wait := w.fell(s, end.err)
	w.pauseTopics(lost, w.now()+wait, false)
	w.opts.Logger.Info("listen stream ended, its topics will be asked for again",
		"topics", len(lost), "open", (w.now() - s.since).Round(time.Millisecond), "in", wait.Round(time.Millisecond), "reason", end.err)
}

// fell returns how long to wait before the topics of a stream that has ended are
// asked for again.
func (w *watch) fell(s *sharedStream, err error) time.Duration {
	if w.now()-s.since > w.opts.Retry.Max {
		w.falls = 0
	}
	wait := w.pause(w.falls)
	w.falls++
	if err == ErrEnded {
		wait = max(wait, backoff.Jitter(gracefulRest))
	}
	return wait
}
