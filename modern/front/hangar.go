package front

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A hangar holds the flights of one front: those under way and those parked. It
// is bounded by what it books: a flight takes a place with its first question
// and keeps it to its end.
type hangar struct {
	f *Front

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	flights map[uint64]*flight
	booked  map[*flight]struct{}
	each    map[mcp.Share]int // of booked
	closed  bool

	running sync.WaitGroup // handlers
}

func newHangar(f *Front) *hangar {
	return &hangar{
		f:       f,
		flights: make(map[uint64]*flight),
		booked:  make(map[*flight]struct{}),
		each:    make(map[mcp.Share]int),
	}
}

// askable reports whether a client can be asked anything.
func askable(req *mcp.Request) bool {
	for k := range wire.Members(req.Capabilities) {
		if k.Is("elicitation") || k.Is("sampling") || k.Is("roots") {
			return true
		}
	}
	return false
}

// depart starts a flight that serves req, with p attached. It does not end with
// the request's context, but with cancel.
func (h *hangar) depart(ctx context.Context, req *mcp.Request, p *reply) (*flight, error) {
	room, err := mcp.Take(h.f.opts.Memory, req.Share, flightSize+len(req.Params))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	fl := &flight{
		hangar: h,
		id:     rand.Uint64(),
		req:    req,
		bind:   binding(h.f.opts.Name, req),
		cancel: cancel,
		done:   make(chan struct{}),
		asked:  make(chan struct{}, 1),
		room:   room,
		held:   heldNotes{notes: mcp.Backlog{Room: mcp.NewRoom(h.f.opts.Memory, req.Share)}},
		reply:  p,
		token:  req.ProgressToken,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		cancel(nil)
		room.Release()
		return nil, mcp.RefuseForNow("mcpbridge is shutting down; try again in a moment")
	}
	h.flights[fl.id] = fl
	h.running.Go(func() { fl.run(ctx) }) // ends with the handler; close cancels it
	return fl, nil
}

// find returns the flight that a request's state names, if the state is for this
// request.
func (h *hangar) find(req *mcp.Request) (*flight, State, error) {
	text, ok := wire.GetString(req.Params, "requestState")
	if !ok {
		return nil, State{}, ErrBadState
	}
	st, err := h.f.opts.Sealer.Open(text)
	if err != nil {
		return nil, st, err
	}
	if st.Binding != binding(h.f.opts.Name, req) || time.Now().After(st.Expires) {
		return nil, st, ErrBadState
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fl := h.flights[st.Call]
	if fl == nil {
		return nil, st, ErrBadState
	}
	return fl, st, nil
}

// book gives a flight a place to park, once.
func (h *hangar) book(fl *flight) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.booked[fl]; ok {
		return nil
	}
	who := fl.req.Share
	switch {
	case h.each[who] >= h.f.opts.MaxParkedEach:
		return h.full(limits.ParkedEach, h.f.opts.MaxParkedEach)
	case len(h.booked) >= h.f.opts.MaxParked:
		return h.full(limits.Parked, h.f.opts.MaxParked)
	}
	h.booked[fl] = struct{}{}
	h.each[who]++
	return nil
}

// full tells of a limit, and returns the error for the client. No other call is ended for
// a place: its client was promised that its answers are waited for.
func (h *hangar) full(limit *limits.Limit, most int) error {
	h.f.opts.Metrics.Limit(limit.Key)
	h.f.opts.Logger.Warn("question refused: too many calls wait for answers", "upstream", h.f.opts.Name, "limit", most, "key", limit.Key)
	return mcp.RefuseForNow("%d calls wait for their clients' answers, the limit; try again later, or %s", most, limit.Raise())
}

func (h *hangar) remove(fl *flight) {
	fl.vacate()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.flights, fl.id)
	if _, ok := h.booked[fl]; !ok {
		return
	}
	delete(h.booked, fl)
	who := fl.req.Share
	if h.each[who]--; h.each[who] == 0 {
		delete(h.each, who)
	}
}

// close cancels all flights and waits for their handlers.
func (h *hangar) close(cause error) {
	h.mu.Lock()
	h.closed = true
	all := make([]*flight, 0, len(h.flights))
	for _, fl := range h.flights {
		all = append(all, fl)
	}
	h.mu.Unlock()
	for _, fl := range all {
		fl.close(cause)
		fl.cancel(cause)
	}
	h.running.Wait()
}

// serverInfo returns what the upstream has said of itself. A context that has
// ended asks for what is known, without troubling the upstream.
func (h *hangar) serverInfo(req *mcp.Request) json.RawMessage {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if d, err := h.f.opts.Describer.Describe(ctx, req); err == nil {
		return d.ServerInfo
	}
	return nil
}
