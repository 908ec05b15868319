package gateway

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// perByte is how many bytes of memory one byte of a message takes while it is served:
// itself, and what is made of it for the server.
const perByte = 2

// errNoMemory says that the budget is used up, by all or by one share.
var errNoMemory = errors.New("the memory for clients' messages is used up")

// A room is what one request has of the budget. It is used by one goroutine.
type room struct {
	account *budget.Account
	taken   int64
}

func (g *Gateway) room(share exchange.Share) room {
	return room{account: g.budget.Account(share)}
}

// grow takes room for n more bytes of a message.
func (r *room) grow(n int64) error {
	n *= perByte
	if !r.account.Take(n) {
		return errNoMemory
	}
	r.taken += n
	return nil
}

// release gives everything back.
func (r *room) release() {
	if r.taken > 0 {
		r.account.Give(r.taken)
		r.taken = 0
	}
}

// reserve is the [exchange.Reserve] of the fronts.
func (s *server) reserve(share exchange.Share, n int) (release func(), err error) {
	a, size := s.g.budget.Account(share), perByte*int64(n)
	if a.Take(size) {
		return func() { a.Give(size) }, nil
	}
	return nil, &exchange.Refusal{Err: s.reportNoMemory()}
}

// reportNoMemory counts and logs a refusal, and returns what the client is told.
func (s *server) reportNoMemory() *wire.Error {
	s.g.opts.Metrics.Limit(s.name, "memory")
	s.g.opts.Logger.Warn("request refused: "+errNoMemory.Error(), "upstream", s.name, "limit", s.g.opts.Memory)
	return wire.Errorf(spec.CodeInternal, "%v; try again in a moment, or raise limits.memory", errNoMemory)
}
