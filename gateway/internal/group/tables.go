package group

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// bareOwner is ownerOf for a group without prefixes.
func (b *Back) bareOwner(ctx context.Context, req *mcp.Request, k policy.Kind, name string) (m memberAt, err error) {
	if len(b.opts.Members) == 1 {
		return b.at(0)
	}
	t, err := b.tableWith(ctx, req, k, name)
	if err != nil {
		return m, err
	}
	owner, ok := t.Owner(name)
	switch {
	case !ok:
		return m, b.nobodyHas(req, k, name, t)
	case owner == owners.Contested:
		return m, wire.Errorf(spec.CodeInvalidParams,
			"the %s %q of group %q is that of several servers: %s; who runs mcpbridge can say which one is preferred, rename or hide one, or use prefixes",
			k, mcp.Shorten(name), b.opts.Name, b.quoted(t.Having(name)))
	}
	return b.at(owner)
}

// nobodyHas returns the error for a name that no member is known to have.
func (b *Back) nobodyHas(req *mcp.Request, k policy.Kind, name string, t *owners.Table) error {
	err, unread := unknown(req, k, name), t.Unknown()
	if len(unread) == 0 {
		return err
	}
	return wire.Errorf(spec.CodeInvalidParams, "%s; what these servers have is not known: %s", mcp.WireError(err).Message, b.quoted(unread))
}

// quoted returns the names of members.
func (b *Back) quoted(places []int) string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i] = strconv.Quote(b.opts.Members[place].Name)
	}
	return strings.Join(names, ", ")
}

// tableWith returns the table for a request. If there is none, or a name is not in it, all lists of
// all members are read.
func (b *Back) tableWith(ctx context.Context, req *mcp.Request, k policy.Kind, name string) (*owners.Table, error) {
	at, all := owners.KeyOf(req, k), b.naming.tables
	if t, due, ok := all.Find(at); ok && has(t, name) {
		if due {
			later := detached(b.namesReader(req, k).req)
			b.background.start(func(ctx context.Context) { _, _ = b.readTable(ctx, later, k) }) // it fails with ctx alone
		}
		return t.Table, nil
	}
	before := time.Now()
	leave := b.naming.reading.enter(ctx, gateKey{at, everyMember})
	defer leave()
	if t, _, ok := all.Find(at); ok && (has(t, name) || t.Made.After(before)) {
		return t.Table, nil
	}
	return b.readTable(ctx, req, k)
}

func has(t owners.Found, name string) bool {
	_, ok := t.Owner(name)
	return ok
}

// readTable reads all lists of all members.
func (b *Back) readTable(ctx context.Context, req *mcp.Request, k policy.Kind) (*owners.Table, error) {
	changes := b.naming.tables.Begin()
	readings := b.namesReader(req, k).each(ctx, b.everywhere())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b.learnTable(req, readings, changes), nil
}

// learnTable makes the table for a request of what all members have answered, in order, since the
// beginning of changes. One that is away has the names that are remembered.
func (b *Back) learnTable(req *mcp.Request, readings []*reading, changes int) *owners.Table {
	sets, sure := make([]*owners.Names, len(readings)), true
	for i, r := range readings {
		name := b.opts.Members[i].Name
		if r.err != nil {
			sets[i], sure = b.naming.former.names(name, req, r.list), false
			continue
		}
		sets[i], sure = r.set(), sure && !r.recalled
		b.naming.former.learn(name, req, r.method, sets[i])
	}
	return b.naming.tables.Put(owners.KeyOf(req, readings[0].kind), sets, sure, changes)
}

// set returns the names of a list.
func (r *reading) set() *owners.Names {
	if len(r.pages) == 1 && r.pages[0].set != nil {
		return r.pages[0].set
	}
	return owners.NewNames(r.names())
}

// listChanged has the names of a list that has changed for a profile read again before they are
// used. Call it before the change is told.
func (b *Back) listChanged(scope string, k fanout.Kind) {
	switch k {
	case fanout.ToolsListChanged:
		b.naming.tables.Forget(scope, policy.Tool)
		b.where.change(scope, spec.MethodToolsList)
	case fanout.PromptsListChanged:
		b.naming.tables.Forget(scope, policy.Prompt)
	case fanout.ResourcesListChanged:
		b.where.change(scope, spec.MethodResourcesList, spec.MethodResourcesTemplates)
	}
}
