package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// maxSmall is how many streams may be open or opening, without those of a merge. A
	// further topic causes an immediate merge that includes it.
	maxSmall = 5
	// maxUnmerged is the same for a server that does not accept all topics on one stream.
	maxUnmerged = 64
	// maxOpen limits the open streams. A further topic waits until replaced streams are
	// closed.
	maxOpen = 32

	// overlap is how long replaced streams stay open, at least.
	overlap = 500 * time.Millisecond
	// maxOverlap is how long, at most.
	maxOverlap = 5 * time.Second
	// lookAgain is the time between looks at whether a replaced stream is read to its end.
	lookAgain = 50 * time.Millisecond
)

// An ending says when a stream that a merge has replaced is closed: once its reader has
// been seen twice in a row to have read all that has arrived, and overlap has passed.
type ending struct {
	next time.Duration // when to look; 0: it is not replaced, or its replacement is not open
	by   time.Duration // when it is closed if its reader never catches up
	once bool          // its reader had caught up at the last look
	heir *sharedStream // the stream that has replaced it
}

// mergeState is the state of merges; only the loop uses it. A merge opens one stream for
// the topics of several. When that is acknowledged, the replaced streams stay open for a
// while, because changes that the server sent before may still arrive on them, or may have
// arrived and be unread. In that time the new stream is not merged, so that a change arrives
// on at most two streams, see brings.
type mergeState struct {
	mergeAt    time.Duration // when to merge all; 0: never
	mergeFirst time.Duration // since when a merge is due
	mergeFloor time.Duration // no merge before
	merging    bool          // a merge is in progress
	mergeTries int           // merges in a row that could not replace all streams
}

// A merger merges the streams of a watch.
type merger struct{ *watch }

// settled returns the streams that can be merged: they have no topics that another stream
// has, or is about to have.
func settled(streams []*sharedStream, now time.Duration) []*sharedStream {
	var out []*sharedStream
	for _, s := range streams {
		if !s.replaced && s.youngUntil <= now {
			out = append(out, s)
		}
	}
	return out
}

// room reports whether another stream may be opened.
func (m merger) room() bool {
	n := len(settled(m.streams, m.book.Now())) + m.out
	if m.merging {
		n--
	}
	if m.mergeTries > 0 {
		return n < maxUnmerged
	}
	return n < maxSmall && len(m.streams)+m.out < maxOpen
}

// mergeBy schedules a merge for a time, unless it is scheduled earlier.
func (m *mergeState) mergeBy(now, at time.Duration) {
	if m.mergeAt == 0 {
		m.mergeFirst = now
	}
	m.mergeAt = subscribe.Earliest(m.mergeAt, at)
}

// mergeAgain schedules another merge, later each time.
func (m *mergeState) mergeAgain(now time.Duration) {
	m.mergeTries++
	m.mergeFloor = now + omittedPause(m.mergeTries)
	m.mergeBy(now, m.mergeFloor)
}

// mergeFailed keeps the streams as they are.
func (m *mergeState) mergeFailed(now time.Duration, l *listen) {
	m.merging = false
	for _, s := range l.replaces {
		s.replaced = false
	}
	m.mergeAgain(now)
}

// later schedules a merge for when no new streams have been opened for a while, but
// with a limit.
func (m merger) later() {
	if len(m.streams) < 2 {
		return
	}
	if m.mergeAt == 0 {
		m.mergeFirst = m.book.Now()
	}
	m.mergeAt = min(m.book.Now()+wake.Jitter(settle), m.mergeFirst+5*settle)
}

// excess removes unneeded topics from the streams by a merge. If the server allows only one
// stream, that is not worth a gap for all topics: see single.
func (m merger) excess() {
	wait := 2 * settle
	if m.opts.single {
		wait = 10 * settle
	}
	m.mergeBy(m.book.Now(), m.book.Now()+wake.Jitter(wait))
}

// next returns when pump or endOverlaps has something to do.
func (m merger) next() time.Duration {
	var closing, young time.Duration
	for _, s := range m.streams {
		closing = subscribe.Earliest(closing, s.ending.next)
		young = max(young, s.youngUntil, s.ending.next) // replaced ones are not merged either
	}
	if m.mergeAt == 0 || m.merging || m.opts.single && m.out > 0 {
		return closing
	}
	return subscribe.Earliest(closing, max(m.mergeAt, m.mergeFloor, young))
}

// pump merges all streams if it is time.
func (m merger) pump(ctx context.Context) {
	if m.mergeAt == 0 || m.merging || m.book.Now() < max(m.mergeAt, m.mergeFloor) {
		return
	}
	streams := settled(m.streams, m.book.Now())
	if len(streams) < len(m.streams) {
		return
	}
	m.mergeAt = 0
	if len(streams) > 1 || slices.ContainsFunc(streams, carriesExcess) {
		m.start(ctx, streams, nil)
	}
}

// inHaste merges the streams that can be merged, to make room for topics that wait.
func (m merger) inHaste(ctx context.Context) {
	streams := settled(m.streams, m.book.Now())
	if m.merging || m.book.Now() < m.mergeFloor || len(streams) < 2 || len(m.streams)+m.out >= maxOpen {
		return
	}
	m.start(ctx, streams, m.takeFresh())
}

// start requests one stream for the topics of several, and for fresh topics.
func (m merger) start(ctx context.Context, streams []*sharedStream, fresh []*topic) {
	l := &listen{merge: true, topics: fresh, replaces: streams}
	for _, s := range streams {
		for _, t := range s.topics {
			if t.Promised() {
				l.topics = append(l.topics, t)
			}
		}
	}
	if len(l.topics) == 0 {
		return
	}
	for _, s := range streams {
		s.replaced = true
	}
	m.merging = true
	m.expectTwice()
	m.send(ctx, l)
}

func carriesExcess(s *sharedStream) bool {
	return slices.ContainsFunc(s.topics, func(t *topic) bool { return !t.Needed() })
}

// done handles the acknowledgment of a merge. A replaced stream with topics that the new
// one lacks stays open; the next merge comes later.
func (m merger) done(l *listen, honored bool, omitted []*topic) {
	if !honored {
		m.mergeFailed(m.book.Now(), l)
		return
	}
	m.merging = false
	now, heir := m.book.Now(), m.streams[len(m.streams)-1]
	heir.youngUntil = now + overlap
	for _, s := range l.replaces {
		s.pace.reset()
		s.ending = ending{next: now + overlap - lookAgain, by: now + maxOverlap, heir: heir}
	}
	if slices.ContainsFunc(omitted, carried) {
		m.mergeAgain(m.book.Now())
		return
	}
	m.mergeTries, m.mergeFloor = 0, 0
	m.later()
}

// look reports whether the time has come to close a replaced stream, and whether some of it
// may be unread. If it has not come, it sets the time of the next look.
func (s *sharedStream) look(now time.Duration) (closes, unread bool) {
	e := &s.ending
	if e.next == 0 || e.next > now {
		return false, false
	}
	read := s.pace.caughtUp()
	switch {
	case read && e.once:
		return true, false
	case now >= e.by:
		return true, true
	}
	e.once = read
	e.next = now + lookAgain
	e.heir.youngUntil = max(e.heir.youngUntil, e.next)
	return false, false
}

// endOverlaps closes streams that a merge has replaced, once they have been read.
func (m merger) endOverlaps() {
	for _, s := range slices.Clone(m.streams) {
		if closes, unread := s.look(m.book.Now()); closes {
			gone := m.endOverlap(s)
			if unread {
				m.tellUnread(gone)
			}
		}
	}
}

// tellUnread tells of topics of a stream whose reader never caught up, and which was closed. What
// is unread is lost, so each of them may have changed, unless that was told after what is unread.
func (m merger) tellUnread(topics []*topic) {
	var lost []*topic
	m.book.Update(func() {
		lost = slices.DeleteFunc(topics, func(t *topic) bool {
			return t.State.heard && m.opts.Settings.Subresources != fanout.SubresourcesAsSent
		})
	})
	if len(lost) == 0 {
		return
	}
	for _, t := range lost {
		m.book.Miss(t)
		m.book.TellMissed(t)
	}
	m.opts.Metrics.Limit(m.opts.Name, "listen_overlap")
	m.opts.Logger.Warn("a listen stream was replaced by another, and closed before all of its changes were read: "+
		"they arrive faster than they can be handled; its topics are reported as changed", "topics", len(lost))
}

// endOverlap removes from a stream the topics that other streams have, or that are not
// needed, and returns them. If none are left, it closes the stream.
func (m merger) endOverlap(s *sharedStream) (gone []*topic) {
	s.replaced, s.ending = false, ending{}
	var keep []*topic
	for _, t := range s.topics {
		if t.Needed() && len(t.State.on) == 1 {
			keep = append(keep, t)
		} else {
			gone = append(gone, t)
		}
	}
	s.unload(m.book, gone)
	s.topics = keep
	for _, t := range gone {
		m.Look(t)
	}
	if len(keep) == 0 {
		m.detach(s)
		m.book.Go(s.stream.Close) // its reader ends then
	}
	return gone
}
