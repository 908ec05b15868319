package back

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// profileRoots are the last roots of a profile that has only one client, for all its
// sessions. Safe for concurrent use.
type profileRoots struct {
	b     *Back
	scope string
	lane  bool // the session is not the first of the profile
}

func (p profileRoots) last() json.RawMessage { return p.b.roots.Get(p.scope) }

// RootsChanged implements [mcp.ClientFollower]: the server of each open session of the profile gets
// the client's roots anew before the next call, as refresh does. One that did not ask for any is
// told that they have changed.
func (b *Back) RootsChanged(req *mcp.Request) {
	if len(b.opts.Settings.Roots) > 0 {
		return
	}
	for _, s := range b.sessions(req.Profile.Scope) {
		s.roots.changedAt(req)
	}
}

// changedAt says that the roots of the client of req have changed. What the server has of other
// clients is corrected by [roots.ownedByOther].
func (r *roots) changedAt(req *mcp.Request) {
	if !r.declared {
		return
	}
	r.mu.Lock()
	r.changes++
	never := r.owner == nil && !r.stale
	r.stale = r.stale || r.owner != nil && r.owner.is(req)
	r.mu.Unlock()
	if never {
		r.s.SendLater(context.Background(), wire.AppendNotification(nil, spec.NotifyRootsListChanged, nil, nil))
	}
}

// put stores roots, and announces changed ones to the other sessions of the profile.
func (p profileRoots) put(from *roots, answer json.RawMessage) {
	if !p.b.opts.OneClient {
		return
	}
	answer = bytes.Clone(answer)
	before := p.b.roots.Put(p.scope, answer)
	if before == nil || bytes.Equal(before, answer) {
		return
	}
	for _, s := range p.b.sessions(p.scope) {
		if s.roots != from && s.roots.declared {
			s.roots.announce()
		}
	}
}
