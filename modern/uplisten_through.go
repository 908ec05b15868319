package modern

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errSlowListener is why a stream ends whose client is too slow for what comes: what
// its messages mean is not known here, so none may stand for another.
var errSlowListener = errors.New("its messages came faster than the client reads; listen again")

// serveListen runs a client's own listen request. All notifications of its stream go to
// x, whatever they tell; the result is the server's word that the stream has ended. No
// time-out bounds it.
func (b *Back) serveListen(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &serving{b: b, req: req, x: x, listens: true}
	a, err := s.send(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, b.clientError(req.Method, err)
	case a.err != nil:
		return nil, b.upstreamError(req, a.takeError())
	}
	defer a.free()
	res := exchange.NewResult(keep(a.result), nil)
	res.Extra, res.Era = keep(a.extra), spec.Modern
	return res, nil
}

// listener returns the client's own listen request that a notification names, or nil.
func (p *pipe) listener(m *wire.Message) *connCall {
	id, _ := subscriptionOf(m) // zero if it names none
	n, ok := id.Int()
	if !ok {
		return nil
	}
	if pc := p.call(n); pc != nil && pc.listens() {
		return pc
	}
	return nil
}

// tellListener gives a notification to a client's own listen request, which ends if it
// has too many that wait.
func (p *pipe) tellListener(pc *connCall, m *wire.Message) {
	if m.Method == spec.NotifyToolsListChanged {
		p.l.news(pc.upcall, m)
	}
	if n, ok := pc.note(m); !ok || pc.queue(n) {
		return
	}
	p.l.drop("slow listener")
	p.forget(pc.id)
	if pc.settle(answer{}, &failure{cause: errSlowListener, fate: mayHaveRun}) {
		p.cancel(pc.id, errSlowListener)
	}
}
