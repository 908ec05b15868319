package back

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

var _ mcp.Relayer = (*Back)(nil)

// OpenRelay implements [mcp.Relayer].
func (b *Back) OpenRelay(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (mcp.Relay, []byte, error) {
	var r *relay.Session
	_, leave, err := b.pool.GetOwn(ctx, req.Profile, h, func(ctx context.Context, _ mcp.Profile) (pool.Session, error) {
		var err error
		r, err = b.dialRelay(ctx, req, m, h)
		if err := b.noteConnect(ctx, err); err != nil {
			return nil, err
		}
		held := b.opts.Hold(b.opts.heldIn(), true)
		r.OnState(held.NoteLater(req))
		return ownSession{r.Link(), held}, nil
	})
	var no *relay.Refusal
	switch {
	case err == nil:
		b.noteRelayed(r)
		r.OnClose(leave)
		b.relays.Put(req.Principal, r)
		return r, r.Answer(), nil
	case errors.As(err, &no):
		return nil, no.Answer, nil
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	}
	return nil, nil, b.clientError(spec.MethodInitialize, err)
}

// An ownSession is the session of a relay, as the pool has it.
type ownSession struct {
	*link.Link
	held *upstream.Held
}

// Held implements [pool.Holder].
func (s ownSession) Held() *upstream.Held { return s.held }

// dialRelay opens a session with the client's own handshake.
func (b *Back) dialRelay(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (r *relay.Session, err error) {
	err = b.dial(ctx, req.Profile.Principal, pool.Newcomer{Share: req.Share, Info: req.Profile.ClientInfo}, func(ctx context.Context, connect connector) error {
		r = relay.New(b.relayed, req, h) // a new one for each attempt
		if err := connect(ctx, r.Link()); err != nil {
			return err
		}
		if err := r.Open(ctx, m, req.Trace); err != nil {
			why := connectError(ctx, r.Link(), err)
			endSession(ctx, r.Link())
			return why
		}
		return nil
	})
	return r, err
}

// describeRelayed returns the description in the server's response to a client's
// initialize; nil if its revision is not legacy.
func (b *Back) describeRelayed(r *relay.Session) *mcp.Description {
	n, err := readNegotiated(&b.opts, wire.Get(r.Answer(), "result"))
	if err != nil {
		return nil
	}
	b.revision.Store(n.revision)
	return n.describe(&b.opts)
}
