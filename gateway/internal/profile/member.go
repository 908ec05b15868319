package profile

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Saw tells of the credential of a request whose profile is not assigned here.
func (p *Profiles) Saw(id *mcp.Identity) {
	if p.saw != nil {
		p.saw(id)
	}
}

// Adapt makes a profile of a group that the server is a member of the server's own. It becomes
// that of a client of the server's own endpoint who is alike, but for a legacy client of the
// group: that one has a session of its own at each legacy member, of its own revision.
func (p *Profiles) Adapt(at *mcp.Profile) {
	share := at.Share
	of := parts{tasks: p.era() == spec.Modern && declaresTasks(at.Capabilities)}
	session := at.Revision != "" && p.PerSession()
	place := p.recent.place(at.Scope)
	if last := place.Load(); last != nil && last.scope == at.Scope && last.tasks == of.tasks && last.session == session {
		*at = last.prof
		at.Share = share
		return
	}
	k := memberKey(at.Scope, of.tasks, session)
	prof, ok := p.cache.Get(k)
	if !ok {
		prof = p.derive(&of, at, session)
		p.remember(k, prof)
	} else if place.Load() == nil || rand.Uint32()%16 == 0 { // profiles that share a place get it now and then
		place.Store(&derived{at.Scope, of.tasks, session, prof})
	}
	*at = prof
	at.Share = share
}

// A derived is the profile of the server for one of a group, which is told apart by all that matters.
type derived struct {
	scope          string
	tasks, session bool
	prof           mcp.Profile
}

// recents have a few profiles at hand that are cached, or were: those of the groups' clients that
// send most.
type recents [16]atomic.Pointer[derived]

// place returns where the profile for a scope is, which ends in a digest.
func (r *recents) place(scope string) *atomic.Pointer[derived] {
	if scope == "" {
		return &r[0]
	}
	return &r[int(scope[len(scope)-1])%len(r)]
}

// derive computes a profile of the server for one of a group.
func (p *Profiles) derive(of *parts, at *mcp.Profile, session bool) mcp.Profile {
	of.capabilities = at.Capabilities
	if p.isolation != settings.IsolateNothing {
		of.principal = at.Principal
	}
	if session {
		of.session, of.revision = at.Scope, at.Revision
	}
	if p.clientInfo || session {
		of.info = at.ClientInfo
	}
	return p.profile(of)
}

// memberKey returns the key of the profile for one of a group, whose scope says all but what
// the era of the server makes of it.
func memberKey(scope string, tasks, session bool) key {
	k := key{len: -2} // no key of parts is that
	if tasks {
		k.len--
	}
	if session {
		k.len -= 2
	}
	if copy(k.text[:], scope) < len(scope) {
		digest := sha256.Sum256([]byte(scope))
		k.len -= 4
		k.text = [64]byte{}
		copy(k.text[:], digest[:])
	}
	return k
}
