package front

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// parkedCalls are the calls of one front that may park: those with a reply and those that
// are parked. They are bounded: a call takes a place with its first input request and
// keeps it to its end.
type parkedCalls struct {
	front *Front

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	byID   map[uint64]*parkedCall
	places mcp.Places // one for each call with an input request, from the first one to its end
	closed bool

	running sync.WaitGroup // handlers
}

func newParkedCalls(f *Front) *parkedCalls {
	return &parkedCalls{front: f, byID: make(map[uint64]*parkedCall), places: mcp.PlacesOf(f.opts.Limits, limits.Parked, limits.ParkedEach)}
}

// canRequestInput reports whether the client supports any input requests.
func canRequestInput(req *mcp.Request) bool {
	return wire.HasAny(req.Capabilities, "elicitation", "sampling", "roots")
}

// start starts a call that serves req with the reply p. It ends with cancel, and not with
// the request's context.
func (pc *parkedCalls) start(ctx context.Context, req *mcp.Request, p *reply) (*parkedCall, error) {
	room, err := mcp.Reserve(pc.front.opts.Memory, req.Share, parkedCallSize+len(req.Params))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &parkedCall{
		calls:     pc,
		id:        rand.Uint64(),
		req:       req,
		cancel:    cancel,
		done:      make(chan struct{}),
		inputsDue: wake.NewSignal(),
		memory:    room,
		backlog:   backlog{notes: mcp.Backlog{Memory: mcp.NewReservation(pc.front.opts.Memory, req.Share)}},
		reply:     p,
		token:     req.ProgressToken,
	}
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.closed {
		cancel(nil)
		room.Release()
		return nil, mcp.RefuseForNow("mcpbridge is shutting down; try again in a moment")
	}
	pc.byID[c.id] = c
	pc.running.Go(func() { c.run(ctx) }) // ends with the handler; close cancels it
	return c, nil
}

// find returns the call of a request's requestState, if the state belongs to the request.
func (pc *parkedCalls) find(req *mcp.Request) (*parkedCall, requeststate.State, error) {
	text, ok := wire.GetString(req.Params, "requestState")
	if !ok {
		return nil, requeststate.State{}, requeststate.ErrInvalid
	}
	st, err := pc.front.opts.Sealer.Open(text)
	if err != nil {
		return nil, st, err
	}
	if st.Binding != binding(pc.front.opts.Name, req) || time.Now().After(st.Expires) {
		return nil, st, requeststate.ErrInvalid
	}
	pc.mu.Lock()
	defer pc.mu.Unlock()
	c := pc.byID[st.Call]
	if c == nil {
		return nil, st, requeststate.ErrInvalid
	}
	return c, st, nil
}

// reserve takes a place for a call, once.
func (pc *parkedCalls) reserve(c *parkedCall) error {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if c.reserved {
		return nil
	}
	if limit, most := pc.places.Full(c.req.Share); limit != nil {
		return pc.full(limit, most)
	}
	pc.places.Take(c.req.Share)
	c.reserved = true
	return nil
}

// full counts and logs a limit, and returns the error for the client. It ends no other
// call, because the client of that was promised that it waits.
func (pc *parkedCalls) full(limit *limits.Limit, most int) error {
	pc.front.limits.Hit(limit.Key, "input request refused: too many calls are parked", "limit", most, "key", limit.Key)
	return mcp.RefuseForNow("%d calls wait for input from their clients, the limit; try again later, or %s", most, limit.Raise())
}

func (pc *parkedCalls) remove(c *parkedCall) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	c.memory.Release()
	delete(pc.byID, c.id)
	if c.reserved {
		c.reserved = false
		pc.places.Give(c.req.Share)
	}
}

// close cancels all calls, and waits for their handlers.
func (pc *parkedCalls) close(cause error) {
	pc.mu.Lock()
	pc.closed = true
	all := make([]*parkedCall, 0, len(pc.byID))
	for _, c := range pc.byID {
		all = append(all, c)
	}
	pc.mu.Unlock()
	var parked []*parkedCall
	for _, c := range all {
		if c.close(cause) {
			parked = append(parked, c)
		}
		c.cancel(cause)
	}
	pc.running.Wait()
	for _, c := range parked { // which nobody else removes
		c.abandon(cause)
	}
}
