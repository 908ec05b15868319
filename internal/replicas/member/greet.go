package member

import (
	"context"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// greetTimeout bounds the answer to a greeting.
const greetTimeout = replicas.Heartbeat

// greet asks a replica that is silent at the engine whether it lives.
func (m *Member) greet(ctx context.Context, p *peer) {
	m.picture.mu.Lock()
	to, seen := p.Replica, p.seen
	m.picture.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	err := m.neighbors.Greet(ctx, to)
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	p.greeting = false
	m.peers.greets--
	switch {
	case m.ctx.Err() != nil, !p.lives, p.seen != seen: // it was heard, or has left
	case err == nil:
		if p.greeted.IsZero() {
			m.journal.log(changes, slog.LevelWarn, "a replica is silent at the engine, and answers: it keeps its sessions, and others may take what it has claimed", "replica", to.Instance, "addr", to.Addr)
			m.seen.Moved("unheard")
		}
		p.greeted = m.now()
	default:
		m.logger.Debug("a silent replica does not answer", "replica", to.Instance, "err", err)
		m.peers.silent(p)
		m.news = true
		m.publishLocked()
	}
	m.kick.Send()
}
