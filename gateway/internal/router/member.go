package router

import (
	"context"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/gateway/internal/visit"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A member is a server as a group has it: a client of the server's own endpoint, for which names,
// policy, rates, pins, the audit log and whatever else is of that endpoint apply. It is a
// [group.Member].
type member struct {
	s  *server
	of string // the group's name
}

// members finds the members of a group among the servers that are served at the moment.
type members struct {
	g    *Gateway
	of   string                  // the group's name
	last atomic.Pointer[inTable] // of the last look-up
}

// An inTable has what can be members among the servers of a table.
type inTable struct {
	table *table
	all   map[string]group.Member
}

// find is a [group.Find].
func (m *members) find(name string) group.Member {
	t := m.g.now()
	if t == nil { // the first one is being built
		return nil
	}
	last := m.last.Load()
	if last == nil || last.table != t {
		last = &inTable{t, make(map[string]group.Member)}
		for _, s := range t.servers {
			if s.group == nil {
				last.all[s.name] = member{s, m.of}
			}
		}
		m.last.Store(last)
	}
	return last.all[name]
}

// enter counts a user of the server, until Leave of its life. A reload may have replaced it since
// it was found: then it is the one that is served now.
func (m member) enter() (member, error) {
	if m.s.life.Enter() {
		return m, nil
	}
	if s := m.s.g.now().servers[m.s.name]; s != nil && s.life.Enter() {
		return member{s, m.of}, nil
	}
	return m, wire.Errorf(spec.CodeInternal, "%v", m.s.life.Reason())
}

// Serve implements [group.Member].
func (m member) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	m, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer m.s.life.Leave()
	if err := m.take(req); err != nil {
		return nil, err
	}
	if !spec.Lists(req.Method) {
		req.Passage.Pass()
		if req.Trace != nil {
			req.Trace.Pass(m.s.name, m.s.log.names.Subject(req.Method, req.Params))
		}
	}
	return m.s.Serve(ctx, req, c)
}

// take makes the request of a client of a group one to the server itself.
func (m member) take(req *mcp.Request) error {
	m.s.profiles.Adapt(&req.Profile)
	if req.Passage == nil { // what the group asks for itself
		req.Passage = &mcp.Passage{Group: m.of}
	}
	m.s.profiles.Saw(req.Identity)
	return m.s.allow(req)
}

// forMember returns the request of a client of a group as one to the server itself.
func (m member) forMember(req *mcp.Request) (*mcp.Request, error) {
	own := *req
	return &own, m.take(&own)
}

// Describe implements [group.Member].
func (m member) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	m, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer m.s.life.Leave()
	own, err := m.forMember(req)
	if err == nil && (req.Method == spec.MethodDiscover || req.Method == spec.MethodInitialize) {
		err = m.s.access.OpenRelay(own, nil) // which records refusals alone
	}
	if err != nil {
		return nil, m.s.ForClient(err)
	}
	d, err := placed{m.s}.Describe(ctx, own)
	if m.s.wantsLogin(err) {
		d, err = visit.Undescribed(), nil
	}
	return m.s.access.Description(d), m.s.ForClient(err)
}

// Profile implements [group.Member].
func (m member) Profile(at mcp.Profile) mcp.Profile {
	m.s.profiles.Adapt(&at)
	return at
}

// Subscribe implements [group.Member].
func (m member) Subscribe(p mcp.Profile, mail *fanout.Mailbox, lost func(fanout.Topic, error)) (group.Following, error) {
	f, err := m.s.g.hub.Follow(m.s, p, m.of, mail, lost)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return f, nil
}

// Follows implements [group.Member].
func (m member) Follows(req *mcp.Request, uri string) bool {
	return m.s.ownerOnly(req) == nil && m.s.access.Follows(req, uri)
}

// Refused implements [group.Member].
func (m member) Refused(ctx context.Context, req *mcp.Request, uris []string) {
	if m.s.ownerOnly(req) == nil {
		m.s.access.Refused(ctx, req, uris)
	}
}

// RootsChanged implements [group.Member].
func (m member) RootsChanged(req *mcp.Request) { m.follow(req, m.s.RootsChanged) }

// LevelChanged implements [group.Member].
func (m member) LevelChanged(req *mcp.Request) { m.follow(req, m.s.LevelChanged) }

// ClientLeft implements [group.Member].
func (m member) ClientLeft(req *mcp.Request) { m.follow(req, m.s.ClientLeft) }

// follow has the server told something of a client of the group.
func (m member) follow(req *mcp.Request, tell func(*mcp.Request)) {
	if !m.s.life.Enter() {
		return
	}
	defer m.s.life.Leave()
	if own, err := m.forMember(req); err == nil {
		tell(own)
	}
}

// Era implements [group.Member].
func (m member) Era() spec.Era { return m.s.back.Era() }

// Err implements [group.Member].
func (m member) Err(req *mcp.Request) error {
	err := m.s.back.Err()
	if err == nil || req == nil || m.s.together.forward == nil {
		return err
	}
	own := *req
	m.s.profiles.Adapt(&own.Profile)
	if m.s.together.forward.ServedElsewhere(&own) {
		return nil
	}
	return err
}
