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

// Lanes reserve sessions for calls during which the server may request input, if a server's
// messages do not identify the call: always, or for scopes in which that was noticed. A
// call waits until a lane is free. Lanes are safe for concurrent use.
type Lanes struct {
	// Always says that messages never identify the call.
	Always atomic.Bool

	max int

	// mu guards the fields below. It is held for list work only, and is a leaf.
	mu      sync.Mutex
	sets    map[string]*laneSet              // by scope; absent if no lane is in use
	unclear *simplelru.LRU[string, struct{}] // scopes in which streams do not identify the call
}

type laneSet struct {
	busy    []bool     // by lane
	waiting []chan int // first in, first out; capacity 1
}

// NewLanes returns max lanes for each scope. It can store for that many scopes that their
// messages do not identify the call.
func NewLanes(max, scopes int) (*Lanes, error) {
	unclear, err := simplelru.NewLRU[string, struct{}](scopes, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/pool: NewLanes: %w", err)
	}
	return &Lanes{max: max, sets: make(map[string]*laneSet), unclear: unclear}, nil
}

// Enter returns the lane for a request, and a function that leaves it, which may be called
// twice. It returns the preferred lane if that is free, and 0 for requests that need none.
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

// wantsLane reports whether the server may request input from the client during a request. What is
// about a task that the client holds goes to one session, whose task it is.
func wantsLane(req *mcp.Request) bool {
	return !req.HoldsTasks && spec.MayAsk(req.Method) && mcp.CanBeAsked(req.Profile.Capabilities)
}

// take returns a free lane, if possible the preferred one; or a place in the queue; or -1
// if no lane is needed.
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
	for len(set.busy) <= prefer { // it was in use before, so it is below max
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

// leave passes a lane to the next call in the queue.
func (l *Lanes) leave(scope string, lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := l.sets[scope]
	if len(set.waiting) > 0 {
		set.waiting[0] <- lane // never blocks: there is only one send
		set.waiting[0] = nil
		set.waiting = set.waiting[1:]
		return
	}
	set.busy[lane] = false
	if !slices.Contains(set.busy, true) {
		delete(l.sets, scope)
	}
}

// giveUp leaves the queue. If it got a lane at the same moment, it leaves that.
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

// Ambiguous records that the messages of a scope do not identify the call.
func (l *Lanes) Ambiguous(scope string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unclear.Add(scope, struct{}{})
}

// laneMark separates a scope from the number of a lane.
const laneMark = "#"

// OnLane returns the profile of a lane's session in the pool. The first lane has the
// profile's own, which also has the subscriptions.
func OnLane(p mcp.Profile, lane int) mcp.Profile {
	if lane > 0 {
		p.Scope = fmt.Sprintf("%s%s%d", p.Scope, laneMark, lane)
	}
	return p
}

// CutLane returns the profile's own scope, and whether the scope is that of another lane
// than the first.
func CutLane(scope string) (own string, further bool) {
	own, _, further = strings.Cut(scope, laneMark)
	return own, further
}
