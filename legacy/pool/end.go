package pool

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Why a session ends, for Metrics.
const (
	endIdle     = "idle"
	endEvicted  = "evicted"
	endReleased = "released"
	endLost     = "lost"
	endClosed   = "closed"
)

// endTimeout bounds what a server is told at the end of a session.
const endTimeout = 5 * time.Second

// idleLocked decides what becomes of an entry that nobody uses. Short uses come
// one after the other: the timer is left alone meanwhile.
func (p *Pool) idleLocked(e *entry) {
	switch {
	case !e.s.Alive():
		p.endLocked(e, endLost)
	case e.private:
		p.endLocked(e, endReleased)
	default:
		p.idle.Add(e, struct{}{})
		e.left = time.Now()
		if !e.armed {
			p.armLocked(e, p.opts.Idle)
		}
	}
}

func (p *Pool) armLocked(e *entry, d time.Duration) {
	e.armed = true
	if e.timer == nil {
		e.timer = time.AfterFunc(d, func() { p.expire(e) })
		return
	}
	e.timer.Reset(d)
}

// expire ends an entry whose timer fired, unless it was in use since.
func (p *Pool) expire(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.armed = false
	if e.ended || e.uses > 0 {
		return
	}
	if left := p.opts.Idle - time.Since(e.left); left > 0 {
		p.armLocked(e, left)
		return
	}
	p.endLocked(e, endIdle)
}

// endLocked takes e off the pool and ends its session upstream, in a goroutine
// that Close waits for.
func (p *Pool) endLocked(e *entry, why string) {
	if e.ended {
		return
	}
	e.ended = true
	p.countOutLocked(e)
	if e.timer != nil {
		e.timer.Stop()
	}
	p.idle.Remove(e)
	if p.shared[e.scope] == e {
		delete(p.shared, e.scope)
	}
	if e.opened() && e.err == nil {
		p.opts.Metrics.SessionEnded(p.opts.Name, why)
		if why == endLost && time.Since(e.since) < upstream.Stable {
			// A child that exits at once must not be started in a loop.
			p.pauseLocked(e.scope, time.Now(), e.s.Err())
		}
		p.ending++
		p.running.Go(func() { p.end(e.s, why) }) // bounded by endTimeout, and by what a connection grants a child
	}
}

// countOutLocked takes e off those that have not ended, once.
func (p *Pool) countOutLocked(e *entry) {
	if _, in := p.all[e]; !in {
		return
	}
	delete(p.all, e)
	if p.each[e.owner]--; p.each[e.owner] == 0 {
		delete(p.each, e.owner)
	}
}

// end ends a session at the server, and says so if the server lost it.
func (p *Pool) end(s Session, why string) {
	if why == endLost {
		p.opts.Lost()
		p.opts.Logger.Warn("server lost its session", "error", s.Err())
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	s.Close(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending--; p.ending == 0 && p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
}

// EndIdle ends the sessions that nobody uses, of a share and the gateway's own, and waits
// until none is being ended any more.
func (p *Pool) EndIdle(ctx context.Context, share mcp.Share) error {
	unused := p.unused()
	p.mu.Lock()
	for e := range p.all {
		isOwn := e.owner == share || e.owner == mcp.Share{}
		if isOwn && e.opened() && (e.uses == 0 || e.uses == 1 && unused[e]) {
			p.endLocked(e, endEvicted)
		}
	}
	if p.ending == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.ended == nil {
		p.ended = make(chan struct{})
	}
	ended := p.ended
	p.mu.Unlock()
	return wake.Await(ctx, ended)
}

// unused returns the sessions that have one user which has no use for them: a client of
// their own that has nothing open, or one that lingers. These are asked outside of the
// lock.
func (p *Pool) unused() map[*entry]bool {
	p.mu.Lock()
	var once []*entry
	for e := range p.all {
		if e.uses == 1 && e.opened() {
			once = append(once, e)
		}
	}
	p.mu.Unlock()
	out := make(map[*entry]bool)
	for _, e := range once {
		if e.unused != nil && e.unused() || e.unused == nil && !e.private && p.opts.Lingers(e.scope) {
			out[e] = true
		}
	}
	return out
}

// Close ends every session, used or not, and waits for all of it, as long as ctx allows.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	for _, stop := range p.stops {
		stop(mcp.ErrShutdown)
	}
	for e := range p.all {
		p.endLocked(e, endClosed)
	}
	p.shared = nil
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when the last session has, each of which is bounded
		p.running.Wait()
		close(done)
	}()
	return wake.Await(ctx, done)
}
