package front

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// endedMoved is why a session ends here that goes on elsewhere.
const endedMoved = "another replica goes on with it"

// A Handover is what another replica needs to go on with a session over Streamable HTTP that
// has no session upstream.
type Handover struct {
	ID           SessionID
	Name         string // for logs
	Opener       mcp.Sender
	Revision     spec.Revision
	Capabilities json.RawMessage // the client's, in neutral form
	ClientInfo   json.RawMessage
	Offered      mcp.ServerCapabilities // without Raw
	Opened       int64                  // in Unix seconds
	Level        spec.LogLevel
	Lists        bool     // the client is told of changes of the lists that the server offers
	URIs         []string // the subscribed resources
}

// A Detached is a session that was taken out, to be handed over. Adopted or Restore must be
// called, once.
type Detached struct {
	s    *session
	done chan struct{} // closed by both
	by   string        // who has adopted it; empty if it was restored
}

// Detach takes out at most most of the sessions that can be handed over: those without a
// session upstream, without a request that is served, and, unless unread is set, without a
// response that the client has not read.
func (f *Front) Detach(most int, unread bool) (out []*Detached) {
	for _, s := range f.sessions.atRest(most) {
		if !unread && s.streams.HasUnread() {
			continue
		}
		if d := f.sessions.detach(s); d != nil {
			out = append(out, d)
		}
	}
	return out
}

// Detachable returns the number of sessions that Detach may take out, at once or later.
func (f *Front) Detachable() (n int) {
	f.sessions.mu.Lock()
	defer f.sessions.mu.Unlock()
	for _, s := range f.sessions.byID {
		if !s.hasOwnUpstream() {
			n++
		}
	}
	return n
}

// Handover returns what the other replica needs.
func (d *Detached) Handover() Handover {
	s := d.s
	s.mu.Lock()
	h := Handover{
		ID: s.id, Name: s.name, Opener: s.opener, Revision: s.revision, Capabilities: s.capabilities, ClientInfo: s.info,
		Offered: s.offered, Opened: s.opened, Level: s.level,
	}
	s.mu.Unlock()
	h.Opener.Arrival, h.Offered.Raw = nil, nil
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	h.Lists, h.URIs = s.subscriptions.begun, slices.Clone(s.subscriptions.uris)
	return h
}

// Adopted says that another replica goes on with the session. It ends here.
func (d *Detached) Adopted(by string) {
	ss := d.s.front.sessions
	ss.mu.Lock()
	d.by = by
	ss.running.Go(func() { // ends soon: the session has no calls
		d.s.front.log.Info("client session ended", "session", d.s.name, "reason", endedMoved, d.s.opener.Principal.Attr())
		d.s.close()
		d.s.tellEnd(endedMoved)
	})
	ss.mu.Unlock()
	close(d.done)
}

// Restore puts the session back: no replica has adopted it.
func (d *Detached) Restore() {
	ss, s := d.s.front.sessions, d.s
	ss.mu.Lock()
	delete(ss.detached, s.id)
	switch {
	case ss.byID == nil:
		ss.running.Go(s.close)
	default:
		s.usage.ending = false
		ss.places.Take(s.opener.Share)
		ss.byID[s.id] = s
		ss.front.opts.Metrics.Sessions(ss.front.opts.Name, 1)
		if s.usage.uses == 0 {
			ss.idleLocked(s)
		}
	}
	ss.mu.Unlock()
	close(d.done)
}

// Wait returns who has adopted the session; empty if it was restored, or ctx ended before.
func (d *Detached) Wait(ctx context.Context) (by string) {
	if wake.Await(ctx, d.done) != nil {
		return ""
	}
	return d.by
}

// Hold keeps a session of a principal here until release. If it was detached, it returns
// that; if there is no such session, both are nil.
func (f *Front) Hold(id string, principal mcp.Principal) (release func(), d *Detached) {
	ss := f.sessions
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if d := ss.detached[SessionID(id)]; d != nil && d.s.opener.Principal == principal {
		return nil, d
	}
	s := ss.byID[SessionID(id)]
	if s == nil || s.opener.Principal != principal {
		return nil, nil
	}
	ss.useLocked(s)
	return func() { ss.release(s) }, nil
}

// Adopt goes on with the session of another replica, in the place of one that it had adopted
// before. Whatever it follows counts as changed.
func (f *Front) Adopt(h Handover) error {
	s := f.newSession(h.ID, h.Name, h.Opener, handshake{revision: h.Revision, capabilities: h.Capabilities, info: h.ClientInfo, offered: h.Offered}, nil)
	s.opened, s.level = h.Opened, h.Level
	if err := s.takeMemory(); err != nil {
		return err
	}
	err := s.subscriptions.takeOver(h.URIs)
	if err == nil {
		f.sessions.endID(h.ID)
		err = f.sessions.add(s)
	}
	if err != nil {
		s.close()
		return err
	}
	s.subscriptions.resume(h.Lists)
	f.sessions.release(s)
	return nil
}

// Has reports whether there is a session, or one that was detached.
func (f *Front) Has(id SessionID) bool {
	f.sessions.mu.Lock()
	defer f.sessions.mu.Unlock()
	return f.sessions.byID[id] != nil || f.sessions.detached[id] != nil
}

// endID ends the session of that id, if there is one.
func (ss *sessions) endID(id SessionID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byID[id]; s != nil {
		ss.endLocked(s, endedMoved)
	}
}

// atRest returns at most most of the sessions without a session upstream that only GET streams
// use.
func (ss *sessions) atRest(most int) (out []*session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		if len(out) == most {
			break
		}
		if ss.isAtRestLocked(s) {
			out = append(out, s)
		}
	}
	return out
}

func (ss *sessions) isAtRestLocked(s *session) bool {
	return ss.byID[s.id] == s && s.usage.uses == s.usage.readers && !s.hasOwnUpstream()
}

// detach takes a session out of the table. It returns nil if it is used.
func (ss *sessions) detach(s *session) *Detached {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if !ss.isAtRestLocked(s) {
		return nil
	}
	d := &Detached{s: s, done: make(chan struct{})}
	ss.removeLocked(s)
	if ss.detached == nil {
		ss.detached = make(map[SessionID]*Detached)
	}
	ss.detached[s.id] = d
	return d
}

// read counts a GET stream of a session that is in use, until releaseReader.
func (ss *sessions) read(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.usage.readers, s.usage.begun = s.usage.readers+1, true
}

// releaseReader ends the use of a GET stream.
func (ss *sessions) releaseReader(s *session) {
	ss.mu.Lock()
	s.usage.readers--
	ss.mu.Unlock()
	ss.release(s)
}
