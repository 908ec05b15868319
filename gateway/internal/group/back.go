package group

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
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

// A Back is the back of a group. It is an [mcp.Back], and safe for concurrent use.
type Back struct {
	opts       Options
	changes    mcp.Changes
	naming     *naming
	kept       *kept
	joined     map[string]*atomic.Pointer[joined] // by method; read-only
	short      *shortLists
	background *background
	describing []atomic.Bool                // the members that are asked in the background for their descriptions, by place
	leftOut    *lru.Cache[string, struct{}] // what was left out of lists, and told
	where      *whereabouts
	next       atomic.Pointer[Back] // what has replaced it; nil while nothing has
}

// New returns a Back that reports changes to c. The caller calls Close.
func New(o Options, c mcp.Changes) (*Back, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	naming, err := newNaming(&o)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", o.Name, err)
	}
	leftOut, err := lru.New[string, struct{}](maxLeftOut)
	if err != nil {
		return nil, err
	}
	where, err := newWhereabouts()
	if err != nil {
		return nil, err
	}
	b := &Back{opts: o, changes: c, naming: naming, kept: newKept(len(o.Members)), joined: make(map[string]*atomic.Pointer[joined]), leftOut: leftOut, where: where}
	for _, method := range lists {
		b.joined[method] = new(atomic.Pointer[joined])
	}
	b.short, b.background, b.describing = newShortLists(b), newBackground(), make([]atomic.Bool, len(o.Members))
	return b, nil
}

// inherit takes what another Back of the group remembers of members. Call it before b is used.
func (b *Back) inherit(former *Back) {
	former.next.Store(b)
	b.naming.former = former.naming.former
	b.where = former.where
}

// close ends what the Back has started, and waits for it.
func (b *Back) close() { b.background.close() }
