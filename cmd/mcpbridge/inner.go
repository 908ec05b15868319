package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// innerDrain bounds how long a gateway of ours waits for what is in flight.
	innerDrain = time.Second
	// innerEnd bounds how long it takes to end its only server.
	innerEnd = 5 * time.Second
)

// An inner is a gateway with one server and one client, ourselves. It asks one question
// at a time.
type inner struct {
	gateway *gateway.Gateway
	conn    transport.Conn     // ours of the two ends
	info    []byte             // clientInfo
	served  chan struct{}      // closed when the gateway has left its end
	stop    context.CancelFunc // ends what is served
}

// openInner serves the builder's server to ourselves.
func openInner(b *builder) (*inner, error) {
	o := gatewayOptions(b.config)
	o.Drain = innerDrain
	o.Secrets, o.DebugErrors = b.secrets, true
	o.Logger, o.Metrics, o.Servers = b.log, b.metrics, []gateway.ServerOptions{b.serverOptions()}
	g, err := gateway.New(o)
	if err != nil {
		return nil, fmt.Errorf("building the gateway: %w", err)
	}
	near, far := transport.NewPipe()
	ctx, stop := context.WithCancel(context.Background())
	i := &inner{gateway: g, conn: near, info: implementation(), served: make(chan struct{}), stop: stop}
	g.Start()
	go i.serve(ctx, far, b.server.Name) // ends with close
	return i, nil
}

func (i *inner) serve(ctx context.Context, conn transport.Conn, server string) {
	defer close(i.served)
	_ = i.gateway.ServeConn(ctx, conn, server) // its end is seen at the other
}

// do implements [asker].
func (i *inner) do(ctx context.Context, q call) (wire.Message, []byte, error) {
	defer context.AfterFunc(ctx, func() { i.cancel(q.id) })()
	if err := i.conn.Write(q.request(i.info)); err != nil {
		return wire.Message{}, nil, i.lost(ctx)
	}
	for {
		raw, err := i.conn.Read()
		if err != nil {
			return wire.Message{}, nil, i.lost(ctx)
		}
		m, err := wire.Parse(raw, wire.Options{})
		switch {
		case err != nil:
			return m, nil, err
		case m.Kind() == wire.Response && m.ID == q.id && m.Error != nil:
			return m, raw, m.Error
		case m.Kind() == wire.Response && m.ID == q.id:
			return m, raw, nil
		case m.Kind() == wire.Notification && q.notify != nil:
			if err := q.notify(&m, raw); err != nil {
				return m, nil, err
			}
		}
	}
}

// cancel takes a request back, and ends the connection: Read returns.
func (i *inner) cancel(id wire.ID) {
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "requestId", Value: id.Append(nil)})
	q := call{method: spec.NotifyCancelled, params: params}
	_ = i.conn.Write(q.request(i.info)) // it is a courtesy
	_ = i.conn.Close()
}

func (i *inner) lost(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errLost
}

// close implements [asker].
func (i *inner) close() {
	_ = i.conn.Close()
	i.stop()
	<-i.served
	ctx, cancel := context.WithTimeout(context.Background(), innerEnd)
	defer cancel()
	_ = i.gateway.Close(ctx) // nobody is left who could do anything about it
}

// request is the text of a call. Its envelope says who asks.
//
// Spec: 2026-07-28, basic, _meta.
func (q *call) request(info []byte) []byte {
	edits := append([]wire.Edit{
		{Name: spec.MetaProtocolVersion, Value: wire.Quote(string(spec.LatestModern))},
		{Name: spec.MetaClientInfo, Value: info},
		{Name: spec.MetaClientCapabilities, Value: []byte("{}")},
	}, q.meta...)
	meta := wire.AppendEdited(nil, nil, edits...)
	params := wire.AppendEdited(nil, q.params, wire.Edit{Name: "_meta", Value: meta})
	return wire.AppendRequest(nil, q.id, q.method, params, nil)
}
