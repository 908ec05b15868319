package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Reasons for the end of a session, for Metrics.
const (
	endIdle     = "idle"
	endEvicted  = "evicted"
	endLeft     = "left"
	endReleased = "released"
	endLost     = "lost"
	endClosed   = "closed"
)

// endTimeout bounds the requests that end a session at the server.
const endTimeout = 5 * time.Second

// idleLocked handles an entry that is not used any more. If its timer runs, it is not
// reset, because there may be many short uses in a row.
func (p *Pool) idleLocked(e *entry) {
	switch {
	case !e.s.Alive():
		p.endLocked(e, endLost)
	case e.private, e.released:
		p.endLocked(e, endReleased)
	default:
		p.idle.Add(e, struct{}{})
		e.left = time.Now()
		if lasts := p.lasts(e); !e.armed && lasts >= 0 {
			p.armLocked(e, lasts)
		}
		p.yieldLocked(e)
	}
}

// Release has the sessions of a scope, and of its lanes, end once nobody uses them, at once if
// nobody does: the client has left whose they are alone.
func (p *Pool) Release(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := range p.all {
		if own, _ := CutLane(e.scope); own != scope {
			continue
		}
		e.released = true
		if e.uses == 0 && e.opened() {
			p.endLocked(e, endReleased)
		}
	}
}

// lasts returns how long e stays open unused; negative for ever.
func (p *Pool) lasts(e *entry) time.Duration {
	if p.opts.Lasts == nil {
		return p.opts.Idle
	}
	return p.opts.Lasts(e.s)
}

func (p *Pool) armLocked(e *entry, d time.Duration) {
	e.armed = true
	if e.timer == nil {
		e.timer = time.AfterFunc(d, func() { p.expire(e) })
		return
	}
	e.timer.Reset(d)
}

// expire ends an entry whose timer has fired, unless it has been used since.
func (p *Pool) expire(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.armed = false
	if e.ended || e.uses > 0 {
		return
	}
	lasts := p.lasts(e)
	if lasts < 0 {
		return
	}
	if left := lasts - time.Since(e.left); left > 0 {
		p.armLocked(e, left)
		return
	}
	p.endLocked(e, endIdle)
}

// endLocked removes e from the pool and ends its session upstream, on a goroutine that
// Close waits for.
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
		p.tellLocked(e, why)
		p.opts.Metrics.SessionEnded(p.opts.Name, why)
		if why == endLost && time.Since(e.since) < upstream.Stable {
			// A child process that exits at once must not be started in a loop.
			p.pauseLocked(e.scope, time.Now(), e.s.Err())
		}
		e.gone = make(chan struct{})
		p.ending[e] = struct{}{}
		p.running.Go(func() { p.end(e, why) }) // bounded by endTimeout, and by the time that a child process gets to exit
	}
}

// tellLocked records what clients lose by the end of a session, before another one is opened.
func (p *Pool) tellLocked(e *entry, why string) {
	h, ok := e.s.(Holder)
	if !ok || e.told {
		return
	}
	e.told = true
	switch {
	case why == endReleased:
		h.Held().End()
	case why == endClosed:
		p.running.Go(h.Held().Closed())
	case why == endIdle:
		p.running.Go(h.Held().Lose(upstream.LostIdle))
	case why == endLost:
		p.running.Go(h.Held().Ended())
	case e.yields != nil:
		p.running.Go(h.Held().Lose(upstream.LostLimit))
	default:
		p.running.Go(h.Held().Lose(upstream.LostAlone))
	}
}

// countOutLocked removes e from the sessions that have not ended.
func (p *Pool) countOutLocked(e *entry) {
	if _, in := p.all[e]; !in {
		return
	}
	delete(p.all, e)
	p.uncountLocked(e.owner)
	p.grantLocked()
}

// end ends the session of e at the server, and logs if the server has lost it, or if it
// yields its place because a limit is reached.
func (p *Pool) end(e *entry, why string) {
	switch {
	case why == endLost:
		p.opts.Lost()
		p.opts.Logger.Warn("server lost its session", "error", e.s.Err())
	case e.yields != nil:
		p.opts.Logger.Warn("all sessions are taken: one that nobody used has ended; to keep more, " + e.yields.Raise())
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	e.s.Close(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ending, e)
	close(e.gone)
}

// A Newcomer is a client for which a session is to be opened.
type Newcomer struct {
	Share mcp.Share
	// Info is the clientInfo of a client that opens a session of its own; else nil.
	Info json.RawMessage
}

// EndLeft ends the sessions that the newcomer has left, and those of its share and of the
// gateway itself that nobody uses and that have no state. It waits for the end of those, and
// of what else is ending then for this share, or if all is set for anybody.
func (p *Pool) EndLeft(ctx context.Context, to Newcomer, all bool) error {
	left, lingering := p.left(to, all), p.lingering()
	p.mu.Lock()
	for e := range p.all {
		switch d, ok := left[e]; {
		case ok && d == math.MaxInt64: // its client has ended it
			p.endLocked(e, endReleased)
		case ok && e.client.Retire(d):
			p.endLocked(e, endLeft)
		case p.isOwn(e, to.Share) && e.opened() && p.isUnneededLocked(e, to.Info, lingering[e]):
			p.endLocked(e, endEvicted)
		}
	}
	var gone []<-chan struct{}
	for e := range p.ending {
		if all || p.isOwn(e, to.Share) {
			gone = append(gone, e.gone)
		}
	}
	p.mu.Unlock()
	for _, g := range gone {
		if err := wake.Await(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// isOwn reports whether e is of a share, or of the gateway itself.
func (p *Pool) isOwn(e *entry, share mcp.Share) bool {
	return e.owner == share || e.owner == mcp.Share{}
}

// isUnneededLocked reports whether e may end for a newcomer with an info. lingers says that
// its only user does not need it.
func (p *Pool) isUnneededLocked(e *entry, info json.RawMessage, lingers bool) bool {
	switch {
	case e.uses == 0:
		return p.opts.Unneeded(e.s, info, time.Since(e.left))
	case e.uses == 1 && lingers:
		return p.opts.Unneeded(e.s, info, RestTime)
	}
	return false
}

// lingering returns the sessions whose only user does not need them. It calls the users
// without the lock.
func (p *Pool) lingering() map[*entry]bool {
	p.mu.Lock()
	var once []*entry
	for e := range p.all {
		if e.uses == 1 && !e.private && e.opened() {
			once = append(once, e)
		}
	}
	p.mu.Unlock()
	out := make(map[*entry]bool)
	for _, e := range once {
		if p.opts.Lingers(e.scope) {
			out[e] = true
		}
	}
	return out
}

// left returns the sessions that a newcomer has left, and for how long: it has had nothing open in
// them for RestTime, and opens another. One that has sent nothing but its handshake counts only if
// alone is set: the newcomer needs its place. Those that any client has ended are among them, as
// left for ever.
func (p *Pool) left(to Newcomer, alone bool) map[*entry]time.Duration {
	first := handshakeTime
	if alone {
		first = RestTime
	}
	out := make(map[*entry]time.Duration)
	for e, d := range p.rested(RestTime, first) {
		if d == math.MaxInt64 || to.Info != nil && e.owner == to.Share && bytes.Equal(e.info, to.Info) {
			out[e] = d
		}
	}
	return out
}

// Close ends all sessions, also those in use, and waits for their end, at most until ctx
// ends.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	for _, stop := range p.stops {
		stop(mcp.ErrShutdown)
	}
	for e := range p.all {
		p.endLocked(e, endClosed)
	}
	p.shared = nil
	for _, w := range p.waiting {
		close(w.turn) // it is told of the shutdown
	}
	p.waiting = nil
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when the last session has ended; each has a time limit
		p.running.Wait()
		close(done)
	}()
	return wake.Await(ctx, done)
}
