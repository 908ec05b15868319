package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// maxForgotten is how many topics a member remembers to have given up, so that a
// change on its way at that moment does not arrive. What was given up before has
// no change on its way any more.
const maxForgotten = 64

var errLeft = errors.New("the session has ended")

// A membership is the hold of one subscriber on topics that come and go. It is an
// [mcp.Membership].
type membership struct {
	h    *hub
	s    *server
	p    mcp.Profile
	mail *fanout.Mailbox

	// mu guards the fields below, the index's pairs of mail with them. It is held
	// for work in memory only.
	mu        sync.Mutex
	held      map[fanout.Topic]*hold // nil after Close
	lost      map[fanout.Topic]*hold // ended by the upstream, yet to be let go
	forgotten []fanout.Topic         // oldest first
}

// A hold is a topic that a member asked the upstream for.
type hold struct {
	settled chan struct{} // closed when the upstream has answered, and the answer stands below
	release func()        // nil if the answer was no
}

// join registers mail without topics.
func (h *hub) join(s *server, p mcp.Profile, mail *fanout.Mailbox) (*membership, error) {
	m := &membership{h: h, s: s, p: p, mail: mail, held: make(map[fanout.Topic]*hold), lost: make(map[fanout.Topic]*hold)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, mcp.Refuse(spec.CodeInternal, "%v; try again in a moment", mcp.ErrShutdown)
	}
	h.members[mail] = m
	return m, nil
}

// member returns the membership of mail, or nil for a listen stream's.
func (h *hub) member(mail *fanout.Mailbox) *membership {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.members[mail]
}

// Add implements [mcp.Membership]. What is asked for together is asked at
// the same time, so that the back can put it into one request.
func (m *membership) Add(ctx context.Context, want mcp.Filter) (mcp.Filter, error) {
	topics := want.Topics(m.p.Scope)
	held, errs := make([]bool, len(topics)), make([]error, len(topics))
	var wg sync.WaitGroup
	for i, t := range topics {
		wg.Go(func() { held[i], errs[i] = m.add(ctx, t) })
	}
	wg.Wait()
	honored := topics[:0]
	for i, t := range topics {
		if held[i] {
			honored = append(honored, t)
		}
	}
	return want.Narrow(honored), errors.Join(errs...)
}

// add asks for one topic, unless it is held or being asked for, and reports
// whether it is held then.
func (m *membership) add(ctx context.Context, t fanout.Topic) (bool, error) {
	h, former, mine := m.claim(t)
	former.let()
	if h == nil {
		return false, errLeft
	}
	if !mine {
		select {
		case <-h.settled:
			return h.release != nil, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	honored, release, err := m.s.back.Watch(ctx, m.p, []fanout.Topic{t})
	if err != nil {
		m.h.logger.Info("subscription refused", "upstream", m.s.name, "topic", t, "err", err)
	}
	return m.settle(t, h, len(honored) > 0, release), m.s.g.told(err)
}

// claim registers the topic, before the upstream is asked, so that no change falls
// between its answer and the registration. mine says that the caller has to ask,
// former is what it has to let go before.
func (m *membership) claim(t fanout.Topic) (h, former *hold, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		return nil, nil, false
	}
	if h = m.held[t]; h != nil {
		return h, nil, false
	}
	former = m.lost[t]
	delete(m.lost, t)
	h = &hold{settled: make(chan struct{})}
	m.held[t] = h
	m.mail.Accept(t)
	m.h.index.Subscribe(t, m.mail)
	return h, former, true
}

// settle takes the upstream's answer down, and reports whether the topic is held.
// It is not if it was given up meanwhile.
func (m *membership) settle(t fanout.Topic, h *hold, honored bool, release func()) bool {
	m.mu.Lock()
	stands := m.held[t] == h
	switch {
	case stands && honored, m.lost[t] == h:
		h.release, release = release, nil
	case stands:
		m.forgetLocked(t)
	}
	close(h.settled)
	m.mu.Unlock()
	if release != nil {
		release()
	}
	return stands && honored
}

// Remove implements [mcp.Membership].
func (m *membership) Remove(uris ...string) {
	for _, t := range (mcp.Filter{URIs: uris}).Topics(m.p.Scope) {
		m.mu.Lock()
		h := m.held[t]
		if h != nil {
			m.forgetLocked(t)
		}
		m.mu.Unlock()
		h.let()
	}
}

// lose gives up a topic of which no more changes will come. The subscriber gets a
// last one, so that it asks again and sees for itself. The back that says so is not
// called back from here: it lets go later.
func (m *membership) lose(t fanout.Topic, reason error) {
	m.mu.Lock()
	h := m.held[t]
	if h != nil {
		delete(m.held, t)
		m.lost[t] = h
		m.h.index.Unsubscribe(t, m.mail)
	}
	m.mu.Unlock()
	if h != nil {
		m.mail.Put(fanout.Event{Topic: t})
		m.h.logger.Warn("subscription ended", "upstream", m.s.name, "topic", t, "reason", reason)
	}
}

// Close implements [mcp.Membership].
func (m *membership) Close() {
	m.mu.Lock()
	held, lost := m.held, m.lost
	m.held, m.lost = nil, nil
	m.h.index.Prune(m.mail)
	m.mu.Unlock()
	m.h.mu.Lock()
	delete(m.h.members, m.mail)
	m.h.mu.Unlock()
	for _, holds := range []map[fanout.Topic]*hold{held, lost} {
		for _, h := range holds {
			h.let()
		}
	}
}

// forgetLocked takes the topic off the member, pending changes too.
func (m *membership) forgetLocked(t fanout.Topic) {
	delete(m.held, t)
	m.h.index.Unsubscribe(t, m.mail)
	m.mail.Refuse(t)
	if m.forgotten = append(m.forgotten, t); len(m.forgotten) > maxForgotten {
		m.mail.Accept(m.forgotten[0])
		m.forgotten = m.forgotten[1:]
	}
}

// let tells the back that interest has ended. What the back has not answered yet is
// let go by settle.
func (h *hold) let() {
	if h == nil {
		return
	}
	select {
	case <-h.settled:
		if h.release != nil {
			h.release()
		}
	default:
	}
}
