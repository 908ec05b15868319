package source

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// moveTimeout bounds one attempt to move a scope.
const moveTimeout = 15 * time.Second

// movePauses are the pauses between attempts to move a scope to the server's back.
var movePauses = wake.Backoff{Min: 250 * time.Millisecond, Max: 5 * time.Second}

// errNotHonored is why a topic ends that the next owner does not watch.
var errNotHonored = errors.New("the server does not report its changes to the replica that watches from now on")

// moveLocked moves the follows of a scope to its aim, if there are others. The goroutine ends
// when all are moved, or with the Group.
func (s *Source) moveLocked(sc *scope) {
	if sc.moving || s.closed || len(s.behindLocked(sc)) == 0 {
		return
	}
	sc.moving = true
	s.group.running.Go(func() { s.move(sc) })
}

// behindLocked returns the follows that have to move.
func (s *Source) behindLocked(sc *scope) []*follow {
	var out []*follow
	for f := range sc.follows {
		if f.on != sc.aim && !f.pinned {
			out = append(out, f)
		}
	}
	return out
}

// move moves the follows of a scope until all are where they should be.
func (s *Source) move(sc *scope) {
	for failures := 0; ; {
		m, err := s.attempt(sc)
		switch {
		case m == nil:
			return
		case err == nil || m.until.Err() != nil:
			s.drop(sc, m.to)
			failures = 0
		case m.to != s.own && s.unable(sc, m.to, failedFor, err):
		default:
			if m.to == s.own {
				s.drop(sc, m.to)
			}
			s.group.opts.Logger.Warn("the server can't be watched, trying again", "upstream", s.opts.Name, "by", m.to.String(), "err", err)
			if wake.Wait(s.group.live, wake.Jitter(movePauses.After(failures))) != nil {
				return
			}
			failures++
		}
	}
}

// attempt moves the follows of a scope once. It holds a slot meanwhile, but none between two attempts: a
// server that is away must not keep others from moving. The move is nil if there is none any more, or the
// Group has ended.
func (s *Source) attempt(sc *scope) (*move, error) {
	select {
	case s.group.slots <- struct{}{}:
	case <-s.group.live.Done():
		return nil, nil
	}
	defer func() { <-s.group.slots }()
	m := s.begin(sc)
	if m == nil {
		return nil, nil
	}
	return m, m.run(s.group.live)
}

// A move brings follows of a scope to a target.
type move struct {
	s       *Source
	sc      *scope
	to      *target // used by the move
	until   context.Context
	follows []*follow
}

// begin returns the next move of a scope. If there is none, it ends moving, and returns nil.
func (s *Source) begin(sc *scope) *move {
	s.mu.Lock()
	defer s.mu.Unlock()
	var behind []*follow
	if sc.aim != nil && !s.closed {
		behind = s.behindLocked(sc)
	}
	if len(behind) == 0 {
		sc.moving = false
		return nil
	}
	s.takeLocked(sc, sc.aim)
	return &move{s, sc, sc.aim, sc.moves, behind}
}

// run has the target watch all topics first, so that it asks upstream for all of them at
// once, and then for each follow. It tells one change for each topic, and releases what has
// watched before.
func (m *move) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	defer context.AfterFunc(m.until, cancel)()
	topics, begin := topicsOf(m.follows), time.Now()
	_, release, err := mcp.WatchNow(ctx, m.to.watch, m.sc.profile, topics)
	if err != nil {
		return err
	}
	defer release()
	var former []func()
	for i, f := range m.follows {
		release, err := m.one(ctx, f)
		if err != nil {
			m.finish(former, topicsOf(m.follows[:i]))
			return err
		}
		former = append(former, release)
	}
	m.finish(former, topics)
	m.s.group.opts.Logger.Info("topics have moved", "upstream", m.s.opts.Name, "to", m.to.String(), "topics", len(topics), "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// one moves one follow, and returns what releases its former watch.
func (m *move) one(ctx context.Context, f *follow) (former func(), err error) {
	honored, release, err := mcp.WatchNow(ctx, m.to.watch, m.sc.profile, f.topics)
	if err != nil {
		return nil, err
	}
	s := m.s
	s.mu.Lock()
	if f.left {
		s.mu.Unlock()
		return release, nil
	}
	lost := without(f.topics, honored)
	former, f.release, f.topics = f.release, release, honored
	s.takeLocked(m.sc, m.to)
	s.dropLocked(m.sc, f.on)
	f.on = m.to
	s.mu.Unlock()
	for _, t := range lost {
		s.opts.Changes.End(t, errNotHonored)
	}
	return former, nil
}

// finish tells a change for each topic, and releases what has watched before.
func (m *move) finish(former []func(), topics []fanout.Topic) {
	for _, t := range topics {
		m.s.opts.Cues.Publish(fanout.Event{Topic: t, URI: t.URI})
	}
	for _, release := range former {
		release()
	}
}

// without returns the topics that are not in honored, a subset in the same order.
func without(topics, honored []fanout.Topic) (lost []fanout.Topic) {
	for _, t := range topics {
		if len(honored) > 0 && honored[0] == t {
			honored = honored[1:]
			continue
		}
		lost = append(lost, t)
	}
	return lost
}

// String returns who watches, for the log.
func (t *target) String() string {
	if t.back == nil {
		return "this replica"
	}
	return t.to.Instance
}
