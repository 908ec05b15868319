package front

import (
	"crypto/rand"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A SessionID is a client's Mcp-Session-Id. It grants access to the session, so it is
// never logged.
type SessionID string

// idVersion is the prefix of session ids, which distinguishes this format from later ones.
const idVersion = "1"

// newSessionID returns an id with 130 random bits.
func (f *Front) newSessionID() SessionID {
	return SessionID(idVersion + f.opts.Instance + "-" + rand.Text())
}

// Why a session of a client ended.
const (
	endedByClient = "its client ended it"
	endedIdle     = "it was idle"
	endedEvicted  = "there were too many sessions"
	endedStuck    = "its client does not read"
	endedRested   = "its client had nothing open, and another session was to be opened"
	endedConn     = "its connection has ended"
)

// sessions are the Streamable HTTP sessions of a front. An unused session is idle and ends
// after some time, or earlier if there are too many sessions, the least recently used
// first. Sessions that end with a connection only count towards the limit.
type sessions struct {
	front *Front

	// mu guards the fields below. It is held for map work only.
	mu       sync.Mutex
	byID     map[SessionID]*session // nil after close
	places   mcp.Places
	idle     *simplelru.LRU[*session, *time.Timer]
	detached map[SessionID]*Detached // taken out of byID to be handed over

	running sync.WaitGroup // sessions that are ending
}

// A usage is the state of a session in the table. It is guarded by sessions.mu.
type usage struct {
	uses    int32
	readers int32  // those of uses that are GET streams
	rests   uint32 // how often it was idle
	begun   bool   // its client has sent a request since initialize, or read a stream
	ending  bool
	rested  time.Time // when it was idle last; zero before
}

func newSessions(f *Front) *sessions {
	idle, err := simplelru.NewLRU[*session, *time.Timer](math.MaxInt32, nil)
	if err != nil {
		panic(err) // only a size that is not positive is an error
	}
	places := mcp.PlacesOf(f.opts.Limits, limits.ClientSessions, limits.ClientSessionsEach)
	return &sessions{front: f, byID: make(map[SessionID]*session), idle: idle, places: places}
}

// tellEnding has the GET streams of all sessions end.
func (ss *sessions) tellEnding() {
	ss.mu.Lock()
	all := slices.Collect(maps.Values(ss.byID))
	for _, d := range ss.detached {
		all = append(all, d.s)
	}
	ss.mu.Unlock()
	for _, s := range all {
		s.streams.TellEnding()
	}
}

// add adds a session, which is in use until release.
func (ss *sessions) add(s *session) error {
	return ss.take(s.opener.Share, func() {
		ss.byID[s.id] = s
		s.usage.uses = 1
		ss.front.opts.Metrics.Sessions(ss.front.opts.Name, 1)
	})
}

// reserve takes a place for a session that ends with a connection, until unreserve.
func (ss *sessions) reserve(share mcp.Share) error { return ss.take(share, func() {}) }

func (ss *sessions) unreserve(share mcp.Share) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.places.Give(share)
}

// take takes a place for a session of a share, and calls then under the lock.
func (ss *sessions) take(share mcp.Share, then func()) error {
	ss.mu.Lock()
	limit, most, err := ss.takeLocked(share)
	if err == nil && limit == nil {
		then()
	}
	ss.mu.Unlock()
	if limit == nil {
		return err
	}
	ss.front.limits.Hit(limit.Key, "session refused: all are in use", "limit", most, "key", limit.Key)
	return mcp.RefuseForNow("all %d sessions are in use; try again later, or %s", most, limit.Raise())
}

// takeLocked takes a place for a session of a share. If there is none, it ends an idle
// session, of the same share first, or returns the limit.
func (ss *sessions) takeLocked(share mcp.Share) (limit *limits.Limit, most int, err error) {
	if ss.byID == nil {
		return nil, 0, mcp.RefuseForNow("%v; initialize again in a moment", ss.front.over())
	}
	for limit, most = ss.places.Full(share); limit != nil; limit, most = ss.places.Full(share) {
		if !ss.evictLocked(share, true) && (limit == limits.ClientSessionsEach || !ss.evictLocked(share, false)) {
			return limit, most, nil
		}
	}
	ss.places.Take(share)
	return nil, 0, nil
}

// evictLocked ends the session that has been idle longest, of a share if it must be its own.
func (ss *sessions) evictLocked(share mcp.Share, own bool) bool {
	for _, s := range ss.idle.Keys() { // oldest first
		if !own || s.opener.Share == share {
			ss.endLocked(s, endedEvicted)
			return true
		}
	}
	return false
}

// use returns a session of the principal, which is in use until release, or nil if there
// is none.
func (ss *sessions) use(id SessionID, principal mcp.Principal) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	if s == nil || s.opener.Share.Principal != principal {
		return nil
	}
	ss.useLocked(s)
	return s
}

// retain adds a use to a session that is in use.
func (ss *sessions) retain(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.useLocked(s)
	s.usage.begun = true
}

func (ss *sessions) useLocked(s *session) {
	if t, ok := ss.idle.Peek(s); ok {
		t.Stop()
		ss.idle.Remove(s)
	}
	s.usage.uses++
}

// release ends one use.
func (ss *sessions) release(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.usage.uses--; s.usage.uses > 0 || ss.byID[s.id] != s {
		return
	}
	ss.idleLocked(s)
}

// idleLocked ends the session if it is not used for a while. A timer that has fired before
// it was stopped waits for mu: by then the session may have been used, and be idle anew.
func (ss *sessions) idleLocked(s *session) {
	s.usage.rests++
	s.usage.rested = time.Now()
	rest := s.usage.rests
	ss.idle.Add(s, time.AfterFunc(ss.front.opts.Idle, func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		if s.usage.rests == rest && ss.idle.Contains(s) {
			ss.endLocked(s, endedIdle)
		}
	}))
}

// end ends a session. It may be called again.
func (ss *sessions) end(s *session, why string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] == s {
		ss.endLocked(s, why)
	}
}

// endLocked removes the session from the table, so that requests don't find it. A
// goroutine, for which close waits, does the rest.
func (ss *sessions) endLocked(s *session, why string) {
	ss.removeLocked(s)
	switch why {
	case endedEvicted:
		ss.front.limit(limits.ClientSessions.Key)
	case endedStuck:
		ss.front.limit("write_timeout")
	}
	ss.running.Go(func() { // ends with its calls
		ss.front.log.Info("client session ended", "session", s.name, "reason", why, s.opener.Share.Principal.Attr())
		s.close()
		s.tellEnd(why)
	})
}

// removeLocked removes the session from the table.
func (ss *sessions) removeLocked(s *session) {
	s.usage.ending = true
	delete(ss.byID, s.id)
	ss.places.Give(s.opener.Share)
	if t, ok := ss.idle.Peek(s); ok {
		t.Stop()
		ss.idle.Remove(s)
	}
	ss.front.opts.Metrics.Sessions(ss.front.opts.Name, -1)
}

// close ends all sessions, and waits for that.
func (ss *sessions) close() {
	why := ss.front.over().Error()
	ss.mu.Lock()
	for _, s := range ss.byID {
		ss.endLocked(s, why)
	}
	ss.byID = nil
	ss.mu.Unlock()
	ss.running.Wait()
}

// rest implements [mcp.RelayClient]. A session that is ending was never used.
func (ss *sessions) rest(s *session) (d time.Duration, begun, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.usage.ending {
		return math.MaxInt64, true, true
	}
	return time.Since(s.usage.rested), s.usage.begun, ss.idle.Contains(s)
}

// retire implements [mcp.RelayClient]: what the client sends next does not find the session.
func (ss *sessions) retire(s *session, least time.Duration) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.idle.Contains(s) && time.Since(s.usage.rested) >= least {
		ss.endLocked(s, endedRested)
	}
	return s.usage.ending
}

func (ss *sessions) size() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.places.Len()
}
