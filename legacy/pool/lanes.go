package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Lanes give calls that may be asked for input a session to themselves where nothing on
// the wire tells which call the server asks for: always, or once that was seen of a scope.
// A call that finds no lane free waits in line. Safe for concurrent use.
type Lanes struct {
	// Always says that no scope's messages tell.
	Always atomic.Bool

	max int

	// mu guards the fields below. It is held for list work only, and is a leaf.
	mu      sync.Mutex
	sets    map[string]*laneSet              // by scope; absent where no lane is busy
	unclear *simplelru.LRU[string, struct{}] // scopes whose streams don't tell
}

type laneSet struct {
	busy    []bool     // by lane
	waiting []chan int // first come, first served; capacity 1
}

// NewLanes returns so many lanes for each scope. It remembers of as many scopes that their
// messages don't tell.
func NewLanes(max, scopes int) (*Lanes, error) {
	unclear, err := simplelru.NewLRU[string, struct{}](scopes, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/pool: NewLanes: %w", err)
	}
	return &Lanes{max: max, sets: make(map[string]*laneSet), unclear: unclear}, nil
}

// Enter returns the lane that a request is to take and how to leave it, which may
// be done again. It is the preferred one if that is free. Requests that need none
// take the first.
func (l *Lanes) Enter(ctx context.Context, req *mcp.Request, prefer int) (int, func(), error) {
	if req.Profile.Single || !wantsLane(req) {
		return 0, func() {}, nil
	}
	lane, turn := l.take(req.Profile.Scope, prefer)
	if turn != nil {
		select {
		case lane = <-turn:
		case <-ctx.Done():
			l.giveUp(req.Profile.Scope, turn)
			return 0, nil, context.Cause(ctx)
		}
	}
	if lane < 0 {
		return 0, func() {}, nil
	}
	return lane, sync.OnceFunc(func() { l.leave(req.Profile.Scope, lane) }), nil
}

// wantsLane reports whether a request may be asked what only its own client can
// answer.
func wantsLane(req *mcp.Request) bool {
	return spec.MayAsk(req.Method) && (mcp.Declares(req.Profile.Capabilities, "elicitation") || mcp.Declares(req.Profile.Capabilities, "sampling"))
}

// take returns a free lane, the preferred one if that is, or a place in the line, or
// -1 where none is needed.
func (l *Lanes) take(scope string, prefer int) (int, chan int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := l.sets[scope]
	if set == nil {
		if !l.Always.Load() && !l.unclear.Contains(scope) {
			return -1, nil
		}
		set = &laneSet{}
		l.sets[scope] = set
	}
	for len(set.busy) <= prefer { // it was taken before, so it is below max
		set.busy = append(set.busy, false)
	}
	i := slices.Index(set.busy, false)
	switch {
	case !set.busy[prefer]:
		i = prefer
	case i < 0 && len(set.busy) < l.max:
		set.busy = append(set.busy, false)
		i = len(set.busy) - 1
	}
	if i >= 0 {
		set.busy[i] = true
		return i, nil
	}
	turn := make(chan int, 1)
	set.waiting = append(set.waiting, turn)
	return 0, turn
}

// leave gives a lane to the next in line.
func (l *Lanes) leave(scope string, lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := l.sets[scope]
	if len(set.waiting) > 0 {
		set.waiting[0] <- lane // never blocks: nobody else sends there
		set.waiting[0] = nil
		set.waiting = set.waiting[1:]
		return
	}
	set.busy[lane] = false
	if !slices.Contains(set.busy, true) {
		delete(l.sets, scope)
	}
}

// giveUp leaves the line, or the lane that was given at that very moment.
func (l *Lanes) giveUp(scope string, turn chan int) {
	l.mu.Lock()
	i := -1
	if set := l.sets[scope]; set != nil {
		if i = slices.Index(set.waiting, turn); i >= 0 {
			set.waiting = slices.Delete(set.waiting, i, i+1)
		}
	}
	l.mu.Unlock()
	if i < 0 {
		l.leave(scope, <-turn)
	}
}

// Ambiguous notes that a scope's messages don't tell which call the server asks for.
func (l *Lanes) Ambiguous(scope string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unclear.Add(scope, struct{}{})
}

// laneMark parts a scope from the number of a lane.
const laneMark = "#"

// OnLane returns the profile that a lane's session is pooled under. The first is
// the profile's own, which subscriptions stay on.
func OnLane(p mcp.Profile, lane int) mcp.Profile {
	if lane > 0 {
		p.Scope = fmt.Sprintf("%s%s%d", p.Scope, laneMark, lane)
	}
	return p
}

// CutLane returns the profile's own scope, and whether the scope is of another lane than
// its first.
func CutLane(scope string) (own string, further bool) {
	own, _, further = strings.Cut(scope, laneMark)
	return own, further
}
