package group

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A finder finds the members that have tools and prompts by the names that clients see. Safe for
// concurrent use.
type finder struct {
	*naming
	roster     *roster
	listings   *listings
	background *wake.Background
	reading    owners.Gate    // lists that are read for names
	tables     *owners.Tables // who has which name, without prefixes
	former     *remembered    // names of members that are away
}

func newFinder(o *Options, l *listings, bg *wake.Background) (*finder, error) {
	prefer := make(map[string]int)
	for name, member := range o.Prefer {
		if prefer[name] = l.roster.place(member); prefer[name] < 0 {
			return nil, fmt.Errorf("prefer: %q is to be that of server %q, which is not a member; name one", name, member)
		}
	}
	tables, err := owners.New(prefer)
	return &finder{naming: l.naming, roster: l.roster, listings: l, background: bg, tables: tables, former: l.former}, err
}

// atHand returns the place of the member that has what a request is about, as most are found: its name
// has no escapes and no hash, and nothing need be read; else -1. The part of the name that the member
// does not get is noted in p.
func (f *finder) atHand(req *mcp.Request, k policy.Kind, p *params) int {
	shown := p.subject[1 : len(p.subject)-1] // as it was sent
	if !f.bare {
		i, own, ok := names.PlainIn(&f.prefixes, shown, f.max)
		if !ok {
			return -1
		}
		p.cut = shown[:len(shown)-len(own)]
		return i
	}
	if bytes.IndexByte(shown, '\\') >= 0 {
		return -1
	}
	_, owner := findOwner(f, req, k, shown)
	return max(owner, -1)
}

// findOwner returns the table for a request, nil for none that may be used, and the owner of a name. If
// the lists are to be read again, and the name is known, that begins.
func findOwner[T string | []byte](f *finder, req *mcp.Request, k policy.Kind, name T) (table *owners.Table, owner int) {
	t, due, ok := f.tables.Find(owners.KeyOf(req, k))
	if !ok {
		return nil, owners.Nobody
	}
	owner = owners.OwnerOf(t.Table, name)
	if due && owner != owners.Nobody {
		later := detached(f.listings.readerOf(req, nameLists[k]).req)
		f.background.Start(func(ctx context.Context) { _, _ = f.readTable(ctx, later, k) }) // it fails with ctx alone
	}
	return t.Table, owner
}

// ownerOf returns the member that has the tool or prompt that clients see as shown, and its own
// name there. The error says that nobody has it, that several have it, or names the member that
// is away.
func (f *finder) ownerOf(ctx context.Context, req *mcp.Request, k policy.Kind, shown string) (m memberAt, own string, err error) {
	if f.bare {
		m, err = f.bareOwner(ctx, req, k, shown)
		return m, shown, err
	}
	i, own, ok := names.PlainIn(&f.prefixes, shown, f.max)
	switch {
	case i < 0, !ok && !names.EndsInHash(own): // it may be another spelling of what has a name with a hash
		return m, "", unknown(req, k, shown)
	case !ok:
		return f.ownerOfHashed(ctx, req, k, i, shown)
	}
	m, err = f.roster.at(i)
	return m, own, err
}

// unknown returns the error that says that there is nothing of a name.
func unknown(req *mcp.Request, k policy.Kind, shown string) error {
	op := policy.Use(req.Method, k, shown)
	return names.Unknown(req.Era, &op)
}

// ownerOfHashed is ownerOf for a name with a hash, which begins with the prefix of the member at
// i. If the own name is not at hand, as at another replica, it is looked for in the member's list.
func (f *finder) ownerOfHashed(ctx context.Context, req *mcp.Request, k policy.Kind, i int, shown string) (memberAt, string, error) {
	m, err := f.roster.at(i)
	if err != nil {
		return m, "", err
	}
	own, ok := f.hashed.Get(shown)
	if ok {
		return m, own, nil
	}
	leave := f.reading.Enter(ctx, owners.GateKey{Key: owners.KeyOf(req, k), Member: i})
	defer leave()
	if own, ok = f.hashed.Get(shown); ok { // somebody else has looked for it
		return m, own, nil
	}
	own, err = f.findHashed(ctx, req, k, m, shown)
	return m, own, err
}

// findHashed reads all of a member's list to find out whose name is shown, and has the others
// at hand.
func (f *finder) findHashed(ctx context.Context, req *mcp.Request, k policy.Kind, m memberAt, shown string) (own string, err error) {
	r := f.listings.readerOf(req, nameLists[k]).read(ctx, place{member: m.index})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case r.err != nil:
		return "", mcp.RefuseForNow("the names of server %q of group %q are not known: %v; list the %ss, or try again later",
			m.Name, f.roster.group, mcp.WireError(r.err).Message, k)
	}
	err = unknown(req, k, shown)
	for _, name := range r.names() {
		if !names.IsPlain(m.Prefix, name, f.max) && f.shown(&m.MemberOptions, k, name) == shown {
			own, err = name, nil
		}
	}
	return own, err
}

// bareOwner is ownerOf for a group without prefixes.
func (f *finder) bareOwner(ctx context.Context, req *mcp.Request, k policy.Kind, name string) (m memberAt, err error) {
	if len(f.roster.names) == 1 {
		return f.roster.at(0)
	}
	t, owner, err := f.tableWith(ctx, req, k, name)
	switch {
	case err != nil:
		return m, err
	case owner == owners.Nobody:
		return m, f.nobodyHas(req, k, name, t)
	case owner == owners.Contested:
		return m, wire.Errorf(spec.CodeInvalidParams,
			"the %s %q of group %q is that of several servers: %s; who runs mcpbridge can say which one is preferred, rename or hide one, or use prefixes",
			k, mcp.Shorten(name), f.roster.group, f.roster.quoted(t.Having(name)))
	}
	return f.roster.at(owner)
}

// nobodyHas returns the error for a name that no member is known to have.
func (f *finder) nobodyHas(req *mcp.Request, k policy.Kind, name string, t *owners.Table) error {
	err, unread := unknown(req, k, name), t.Unknown()
	if len(unread) == 0 {
		return err
	}
	return wire.Errorf(spec.CodeInvalidParams, "%s; what these servers have is not known: %s", mcp.WireError(err).Message, f.roster.quoted(unread))
}

// tableWith returns the table for a request, and the owner of a name. If there is no table, or the
// name is not in it, all lists of all members are read.
func (f *finder) tableWith(ctx context.Context, req *mcp.Request, k policy.Kind, name string) (table *owners.Table, owner int, err error) {
	if table, owner = findOwner(f, req, k, name); owner != owners.Nobody {
		return table, owner, nil
	}
	at := owners.KeyOf(req, k)
	before := time.Now()
	leave := f.reading.Enter(ctx, owners.GateKey{Key: at, Member: owners.EveryMember})
	defer leave()
	if t, _, ok := f.tables.Find(at); ok {
		if owner = t.Owner(name); owner != owners.Nobody || t.Made.After(before) {
			return t.Table, owner, nil
		}
	}
	if table, err = f.readTable(ctx, req, k); err != nil {
		return nil, owners.Nobody, err
	}
	return table, table.Owner(name), nil
}

// readTable reads all lists of all members.
func (f *finder) readTable(ctx context.Context, req *mcp.Request, k policy.Kind) (*owners.Table, error) {
	changes := f.tables.Begin()
	readings := f.listings.readerOf(req, nameLists[k]).each(ctx, f.roster.everywhere())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return f.learnTable(req, readings, changes), nil
}

// learnTable makes the table for a request of what all members have answered, in order, since the
// beginning of changes. One that is away has the names that are remembered.
func (f *finder) learnTable(req *mcp.Request, readings []*reading, changes int) *owners.Table {
	sets, sure := make([]*owners.Names, len(readings)), true
	for i, r := range readings {
		name := f.roster.names[i]
		if r.err != nil {
			sets[i], sure = f.former.names(name, req, r.list), false
			continue
		}
		sets[i], sure = r.set(), sure && !r.recalled
		f.former.learn(name, req, r.method, sets[i])
	}
	return f.tables.Put(owners.KeyOf(req, readings[0].kind), sets, sure, changes)
}
