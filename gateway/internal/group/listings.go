package group

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// listings are the lists of all members as clients of the group see them, and what is known of them.
// Safe for concurrent use.
type listings struct {
	opts    *Options
	roster  *roster
	naming  *naming
	sealing *sealing

	kept    *kept
	joined  map[string]*atomic.Pointer[joined] // by method; read-only
	leftOut *lru.Cache[uint64, struct{}]       // digests of what was told once: items left out of lists, and lists that are too long
	seed    maphash.Seed                       // of leftOut

	// A Back that replaces another one goes on with these.
	uris   *owners.URIs
	former *remembered
}

// newListings returns listings that know what those before knew; nil for none.
func newListings(o *Options, s *sealing, before *listings) (*listings, error) {
	l := &listings{opts: o, roster: newRoster(o), sealing: s, kept: newKept(len(o.Members)), joined: make(map[string]*atomic.Pointer[joined]), seed: maphash.MakeSeed()}
	for _, method := range lists {
		l.joined[method] = new(atomic.Pointer[joined])
	}
	var err error
	if l.naming, err = newNaming(o); err != nil {
		return nil, err
	}
	if l.leftOut, err = lru.New[uint64, struct{}](maxLeftOut); err != nil {
		return nil, err
	}
	if before != nil {
		l.uris, l.former = before.uris, before.former
		return l, nil
	}
	if l.uris, err = owners.NewURIs(); err != nil {
		return nil, err
	}
	l.former, err = newRemembered(o.Memory)
	return l, err
}

// learn has lists of all members known, those of methods, that are not, or were read long ago.
// Members are asked at the same time, as the client that has sent req, and not longer than
// patience.
func (l *listings) learn(ctx context.Context, patience time.Duration, req *mcp.Request, methods ...string) {
	l.learnFrom(ctx, patience, req, l.roster.names, methods...)
}

// learnFrom is learn for some members.
func (l *listings) learnFrom(ctx context.Context, patience time.Duration, req *mcp.Request, members []string, methods ...string) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l.uris.Learn(ctx, short, &req.Profile, members, methods, func(ctx context.Context, i int, method string) bool {
		return l.readList(ctx, req, l.roster.place(members[i]), method)
	})
}

// beyond returns who lists which URI on any page, if readings are not all of a list: nil if they are.
// At the first page, what has other pages is read as a whole for that, within half of the patience,
// unless it was read a moment ago; later only what is not known.
func (l *listings) beyond(ctx context.Context, req *mcp.Request, readings []*reading) *owners.Lists {
	partial := false
	var open []string
	for _, r := range readings {
		isPart := r.err == nil && (r.cursor != "" || r.next() != "")
		partial = partial || isPart
		if name := l.roster.names[r.member]; isPart && (r.cursor == "" || !l.uris.Knows(&req.Profile, name, r.method)) {
			open = append(open, name)
		}
	}
	if !partial || len(l.roster.names) == 1 {
		return nil
	}
	if len(open) > 0 {
		l.learnFrom(ctx, l.opts.Patience/2, req, open, req.Method)
	}
	return l.uris.Lists(&req.Profile, l.roster.names, req.Method)
}

// readList reads all pages of a list of a member, which are remembered, and reports whether it
// could. If not, and nothing is known of it, what the member had in an earlier run will do.
func (l *listings) readList(ctx context.Context, req *mcp.Request, i int, method string) bool {
	r := l.readerOf(req, method)
	out := r.read(ctx, place{member: i})
	if out.err == nil {
		return true
	}
	if !l.uris.Knows(&req.Profile, l.roster.names[i], method) && r.recall(out) {
		out.err = nil
		l.note(req, out)
	}
	return false
}

// note remembers what members list, for a client that has read it, or some of it.
func (l *listings) note(req *mcp.Request, r *reading) {
	if r.err != nil || r.kind == policy.Prompt {
		return
	}
	member, whole := l.roster.names[r.member], r.cursor == "" && r.next() == ""
	pages := make([]owners.Mentions, len(r.pages))
	for i, p := range r.pages {
		if pages[i] = p.found; !whole && r.method == spec.MethodResourcesList {
			for _, it := range p.items {
				l.uris.HandOut(&req.Profile, member, it.name)
			}
		}
		for _, uri := range p.found.Apps {
			l.uris.HandOut(&req.Profile, member, uri)
		}
	}
	if !whole {
		return
	}
	if limit := l.uris.Listed(&req.Profile, member, r.method, r.begun, pages...); limit > 0 {
		l.opts.Metrics.Limit(l.opts.Name, "listed_uris")
		if l.isNew(member + " " + r.method) {
			l.opts.Logger.Warn("list is too long to be remembered: servers that don't have what is in it may be asked first; no key raises the limit",
				"upstream", l.opts.Name, "server", member, "method", r.method, "limit", limit)
		}
	}
}
