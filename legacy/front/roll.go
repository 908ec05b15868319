package front

import (
	"context"
	"crypto/rand"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A DownstreamID is the Mcp-Session-Id that a client holds. Whoever has it has the
// session: it is never logged.
type DownstreamID string

// idVersion begins session ids and event ids, so that a later form can be told
// from this one.
const idVersion = "1"

// newDownstreamID returns an id with 130 random bits.
func (f *Front) newDownstreamID() DownstreamID {
	return DownstreamID(idVersion + f.opts.Instance + "-" + rand.Text())
}

// Why a session of a client ended.
const (
	endedByClient = "its client ended it"
	endedIdle     = "it was idle"
	endedEvicted  = "there were too many sessions"
	endedStuck    = "its client does not read"
	endedClosed   = "mcpbridge is shutting down"
)

// A roll is the sessions of a front, over Streamable HTTP. One that nobody uses is
// idle, and ends after a while, or earlier, the least recently used first, when
// there are too many. Sessions that last as long as a connection only take places.
type roll struct {
	f *Front

	// mu guards the fields below. It is held for map work only.
	mu   sync.Mutex
	byID map[DownstreamID]*downstream // nil after close
	held int                          // places taken by hold
	each map[mcp.Share]int
	idle *simplelru.LRU[*downstream, *time.Timer]

	running sync.WaitGroup // sessions that end
}

func newRoll(f *Front) *roll {
	idle, err := simplelru.NewLRU[*downstream, *time.Timer](math.MaxInt32, nil)
	if err != nil {
		panic(err) // only a size that is not positive is an error
	}
	return &roll{f: f, byID: make(map[DownstreamID]*downstream), each: make(map[mcp.Share]int), idle: idle}
}

// add enters a session, which is in use until leave is called.
func (r *roll) add(d *downstream) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.takeLocked(d.share); err != nil {
		return err
	}
	r.byID[d.id] = d
	d.uses = 1
	r.f.opts.Metrics.Sessions(1)
	return nil
}

// hold takes a place for a session that its connection carries, until release.
func (r *roll) hold(share mcp.Share) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.takeLocked(share); err != nil {
		return err
	}
	r.held++
	return nil
}

func (r *roll) release(share mcp.Share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held--
	r.giveLocked(share)
}

// takeLocked counts a session of a share in, if need be in the place of one that is
// idle: of the same share, as long as there is one.
func (r *roll) takeLocked(share mcp.Share) error {
	if r.byID == nil {
		return mcp.RefuseForNow("%v; initialize again in a moment", mcp.ErrShutdown)
	}
	own := func(o *downstream) bool { return o.share == share }
	if r.each[share] >= r.f.opts.MaxSessionsEach && !r.evictLocked(own) {
		return r.full(limits.ClientSessionsEach, r.f.opts.MaxSessionsEach)
	}
	if len(r.byID)+r.held >= r.f.opts.MaxSessions && !r.evictLocked(own) && !r.evictLocked(func(*downstream) bool { return true }) {
		return r.full(limits.ClientSessions, r.f.opts.MaxSessions)
	}
	r.each[share]++
	return nil
}

func (r *roll) giveLocked(share mcp.Share) {
	if r.each[share]--; r.each[share] == 0 {
		delete(r.each, share)
	}
}

func (r *roll) full(limit *limits.Limit, n int) error {
	r.f.opts.Metrics.Limit(limit.Key)
	r.running.Go(func() { r.f.log.Warn("session refused: all are in use", "limit", n) }) // not under the lock
	return mcp.RefuseForNow("all %d sessions are in use; try again later, or %s", n, limit.Raise())
}

// evictLocked ends the session that has been idle longest among those that may.
func (r *roll) evictLocked(may func(*downstream) bool) bool {
	for _, d := range r.idle.Keys() { // oldest first
		if may(d) {
			r.endLocked(d, endedEvicted)
			return true
		}
	}
	return false
}

// makeRoom ends the session that has been idle longest of those that are linked
// upstream, of share's own before others', and returns once that has room for another:
// false if there is none that may end.
func (r *roll) makeRoom(ctx context.Context, share mcp.Share) bool {
	r.mu.Lock()
	oldest := r.oldestLinkLocked(func(d *downstream) bool { return d.share == share })
	if oldest == nil && !r.f.opts.Command {
		oldest = r.oldestLinkLocked(func(*downstream) bool { return true })
	}
	if oldest != nil {
		r.endLocked(oldest, endedEvicted)
	}
	r.mu.Unlock()
	if oldest == nil {
		return false
	}
	select {
	case <-oldest.over:
		return true
	case <-ctx.Done():
		return false
	}
}

// oldestLinkLocked returns the session that has been idle longest of those that may
// end and are linked upstream, or nil.
func (r *roll) oldestLinkLocked(may func(*downstream) bool) *downstream {
	for _, d := range r.idle.Keys() { // oldest first
		if d.link != nil && may(d) {
			return d
		}
	}
	return nil
}

// use returns the session, in use until leave is called. A foreign principal's is
// as unknown as one that never was.
func (r *roll) use(id DownstreamID, principal mcp.Principal) *downstream {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.byID[id]
	if d == nil || d.principal != principal {
		return nil
	}
	r.useLocked(d)
	return d
}

// again is for who uses the session already, and starts something that uses it too.
func (r *roll) again(d *downstream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.useLocked(d)
}

func (r *roll) useLocked(d *downstream) {
	if t, ok := r.idle.Peek(d); ok {
		t.Stop()
		r.idle.Remove(d)
	}
	d.uses++
}

// leave says that one use has ended.
func (r *roll) leave(d *downstream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.uses--; d.uses > 0 || r.byID[d.id] != d {
		return
	}
	r.idle.Add(d, time.AfterFunc(r.f.opts.Idle, func() { r.expire(d) }))
}

func (r *roll) expire(d *downstream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.idle.Peek(d); ok {
		r.endLocked(d, endedIdle)
	}
}

// end ends a session. It may be called again.
func (r *roll) end(d *downstream, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[d.id] == d {
		r.endLocked(d, why)
	}
}

// endLocked takes the session off the roll: requests for it find nothing from here
// on. The rest of its end is done by a goroutine that close waits for.
func (r *roll) endLocked(d *downstream, why string) {
	d.ending = true
	delete(r.byID, d.id)
	r.giveLocked(d.share)
	if t, ok := r.idle.Peek(d); ok {
		t.Stop()
		r.idle.Remove(d)
	}
	r.f.opts.Metrics.Sessions(-1)
	switch why {
	case endedEvicted:
		r.f.opts.Metrics.Limit(limits.ClientSessions.Key)
	case endedStuck:
		r.f.opts.Metrics.Limit("write_timeout")
	}
	r.running.Go(func() { // ends when its calls have
		r.f.log.Info("client session ended", "session", d.name, "reason", why)
		d.close()
		close(d.over)
	})
}

// close ends all sessions and waits for their ends.
func (r *roll) close() {
	r.mu.Lock()
	for _, d := range r.byID {
		r.endLocked(d, endedClosed)
	}
	r.byID = nil
	r.mu.Unlock()
	r.running.Wait()
}

// isIdle reports whether nothing uses the session, or it is ending.
func (r *roll) isIdle(d *downstream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.ending || r.idle.Contains(d)
}

func (r *roll) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID) + r.held
}
