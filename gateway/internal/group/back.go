package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Defaults of Options.
const (
	DefaultPatience      = 2 * time.Second
	DefaultStartPatience = 20 * time.Second
	DefaultNameMax       = 64
)

// Options configure a Back.
type Options struct {
	// Name is the group's name. Required, as are Members, Find and Sealer.
	Name string
	// Members are in the order in which lists have their items.
	Members []MemberOptions
	Find    Find
	// Bare says that clients see names as members have them, without a prefix (G-02). Prefer
	// says then who has a name that several members have.
	Bare   bool
	Prefer map[string]string
	// Patience is for a member that has answered before and does not answer a list, and
	// StartPatience for one that is starting. Zero means their defaults.
	Patience, StartPatience time.Duration
	// Require has lists fail while a member is missing, instead of leaving it out.
	Require bool
	// NameMax is the length of the longest name that clients see, in bytes. Zero means its
	// default.
	NameMax int
	// Unattributed leaves the name of the member that asks out of questions' messages.
	Unattributed bool
	// Instructions are those of the group; empty means those of the members.
	Instructions string
	// ServerInfo is what clients are told of the group, an object.
	ServerInfo []byte
	// Sealer seals what members hand out.
	Sealer *requeststate.Sealer
	// Memory has what members listed before; nil for this run alone.
	Memory  Memory
	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
}

func (o *Options) fill() error {
	if o.Name == "" || len(o.Members) == 0 || o.Find == nil || o.Sealer == nil {
		return errors.New("a group needs a name, members, and what finds and seals")
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.StartPatience == 0 {
		o.StartPatience = DefaultStartPatience
	}
	if o.NameMax == 0 {
		o.NameMax = DefaultNameMax
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	return nil
}

// A Back is the back of a group. It is an [mcp.Handler] and an [mcp.Describer], and safe for
// concurrent use.
type Back struct {
	opts       Options
	changes    mcp.Changes
	roster     *roster
	sealing    *sealing
	describer  *describer
	listings   *listings
	finder     *finder
	short      *shortLists
	background *wake.Background
	uris       *owners.URIs
	next       atomic.Pointer[Back] // what has replaced it; nil while nothing has
}

// New returns a Back that reports changes to c. The caller calls Close.
func New(o Options, c mcp.Changes) (*Back, error) { return newBack(o, c, nil) }

// newBack returns a Back that knows of members what another one of the group does; nil for none.
func newBack(o Options, c mcp.Changes, former *Back) (*Back, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	b := &Back{opts: o, changes: c, background: wake.NewBackground()}
	b.sealing = &sealing{group: o.Name, sealer: o.Sealer, unattributed: o.Unattributed}
	var before *listings
	if former != nil {
		before = former.listings
	}
	var err error
	if b.listings, err = newListings(&b.opts, b.sealing, before); err != nil {
		return nil, fmt.Errorf("group %q: %w", o.Name, err)
	}
	if b.finder, err = newFinder(&b.opts, b.listings, b.background); err != nil {
		return nil, fmt.Errorf("group %q: %w", o.Name, err)
	}
	b.roster, b.uris = b.listings.roster, b.listings.uris
	b.describer, b.short = &describer{opts: &b.opts, roster: b.roster, background: b.background, asked: make([]atomic.Bool, len(o.Members))}, newShortLists(b)
	return b, nil
}

// close ends what the Back has started, and waits for it.
func (b *Back) close() { b.background.Close() }

// Describe implements [mcp.Describer], see [describer].
func (b *Back) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	return b.describer.describe(ctx, req)
}

// listChanged has the names of a list that has changed for a profile read again before they are
// used. Call it before the change is told.
func (b *Back) listChanged(scope string, k fanout.Kind) {
	switch k {
	case fanout.ToolsListChanged:
		b.finder.tables.Forget(scope, policy.Tool)
		b.uris.Change(scope, spec.MethodToolsList)
	case fanout.PromptsListChanged:
		b.finder.tables.Forget(scope, policy.Prompt)
	case fanout.ResourcesListChanged:
		b.uris.Change(scope, spec.MethodResourcesList, spec.MethodResourcesTemplates)
	}
}
