package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// DefaultDrain is how long the calls of a connection may take to end.
const DefaultDrain = 5 * time.Second

// lastWords is how long calls that were cut off may take to tell their client so. A
// client that does not read is not waited for.
const lastWords = 200 * time.Millisecond

// A pipe is the connection of one client while it is served.
type pipe struct {
	s      *server
	conn   transport.Conn
	modern *modernfront.Conn
	former *legacyfront.Conn
	lose   context.CancelCauseFunc // says why the client can't be reached any more
}

// ServeConn serves one client over a connection of messages, which it closes. server
// is a server's name; empty means the only one. The envelope of each message decides
// its era, and nothing locks it: clients probe, and then initialize on the same
// connection.
//
// It returns when the connection has ended. When the client has nothing more to send
// (io.EOF), and when ctx ends, listen streams end with their result and calls in
// flight are given [Options.Drain]; then ServeConn returns nil. When the connection is
// lost, calls are cancelled at once, and ServeConn returns why: a client that does not
// read is lost, too, and so is one whose session upstream has ended.
//
// Spec: 2026-07-28, basic/transports/stdio; basic/versioning, Backward Compatibility
// with Initialization-Based Versions.
func (g *Gateway) ServeConn(ctx context.Context, conn transport.Conn, server string) error {
	if server == "" && len(g.order) == 1 {
		server = g.order[0]
	}
	s := g.servers[server]
	if s == nil {
		return errors.Join(g.unknownServer(server), conn.Close())
	}
	return s.serveConn(ctx, conn, mcp.Share{Principal: mcp.Anonymous})
}

func (s *server) serveConn(ctx context.Context, conn transport.Conn, share mcp.Share) error {
	reachable, lose := context.WithCancelCause(context.Background())
	defer lose(nil)
	p := &pipe{s: s, conn: conn, lose: lose}
	p.modern = s.front.OpenConn(p.send, share)
	p.former = s.former.OpenConn(p.send, share)
	read := make(chan struct{})
	go p.read(read) // ends with the connection
	select {
	case <-read:
	case <-ctx.Done():
	case <-p.former.Lost():
		over := &sessionOver{s.name}
		if m, ok := conn.(mourner); ok {
			m.sessionIsOver(over)
		}
		lose(over)
	case <-reachable.Done():
	}
	p.drain(reachable)
	err := context.Cause(reachable)
	_ = conn.Close() // what it has to say of a client that is gone helps nobody
	<-read
	return err
}

// A sessionOver says that the session upstream has ended that was the client's own.
type sessionOver struct{ server string }

func (e *sessionOver) Error() string {
	return fmt.Sprintf("server %q ended the session of this client; connect anew", e.server)
}

// A mourner is a connection that can tell its client why it is closed.
type mourner interface{ sessionIsOver(why *sessionOver) }

// drain ends what is in flight, in order. The last of its time is for telling the
// client what was cut off.
func (p *pipe) drain(reachable context.Context) {
	patience := p.s.g.opts.Drain
	ctx, cancel := context.WithTimeout(reachable, patience-min(lastWords, patience/4))
	defer cancel()
	rest := time.Duration(0)
	if p.settle(ctx) {
		deadline, _ := ctx.Deadline()
		rest = time.Until(deadline) // for answers that are being written
	}
	late := time.AfterFunc(rest+lastWords, func() { _ = p.conn.Close() })
	defer late.Stop()
	p.modern.Close()
	p.former.Close()
}

// settle has both eras refuse further requests, and reports whether those in flight
// have ended before ctx has.
func (p *pipe) settle(ctx context.Context) bool {
	former := make(chan error, 1)
	go func() { former <- p.former.Shutdown(ctx) }() // ends with ctx
	modern := p.modern.Shutdown(ctx)
	return <-former == nil && modern == nil
}

// send sends one message. A client that can't be sent one is lost.
func (p *pipe) send(msg []byte) error {
	err := p.conn.Write(msg)
	if err != nil {
		p.lose(fmt.Errorf("sending to the client: %w", err))
	}
	return err
}

// read takes the client's messages until the connection ends.
func (p *pipe) read(done chan<- struct{}) {
	defer close(done)
	for {
		text, err := p.conn.Read()
		switch tooLong := (*transport.TooLongError)(nil); {
		case err == nil:
			p.receive(text)
		case errors.As(err, &tooLong):
			p.refuseTooLong(tooLong)
		case errors.Is(err, io.EOF):
			return
		default:
			if errors.Is(err, transport.ErrSlow) {
				p.reportSlow()
			}
			p.lose(fmt.Errorf("receiving from the client: %w", err))
			return
		}
	}
}

func (p *pipe) reportSlow() {
	p.s.g.opts.Metrics.Limit(p.s.name, "body_timeout")
	p.s.g.opts.Logger.Warn("connection given up: a message came too slowly", "upstream", p.s.name, "limit", p.s.g.opts.BodyTimeout)
}

// receive takes one message, or a batch.
func (p *pipe) receive(text []byte) {
	m, err := p.s.parse(text)
	var tooLong *mcp.TooLongError
	switch envelope := (*wire.EnvelopeError)(nil); {
	case errors.As(err, &tooLong):
		p.refuse(m.ID, tooLong.Wire())
	case err == nil:
		p.route(&m)
	case errors.As(err, &envelope) && wire.IsArray(text):
		p.batch(text)
	default:
		p.refuse(m.ID, parseError(err))
	}
}

// batch takes a batch, which only a legacy revision has.
func (p *pipe) batch(text []byte) {
	for m := range wire.Elements(text) {
		if claimsRevision(wire.Get(wire.Get(m, "params"), "_meta")) {
			p.refuse(wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "revision %s has no batches; send each message by itself", spec.Rev20260728))
			return
		}
	}
	p.serveLegacyBatch(text)
}

// route decides whose a message is. A cancellation that names no era is of the one
// whose request it names.
func (p *pipe) route(m *wire.Message) {
	switch {
	case p.s.isModern(m, claimsRevision(m.Meta), spec.Unknown):
		p.modern.Serve(m)
	case m.Method == spec.NotifyCancelled && p.modern.Cancel(m):
	default:
		p.serveLegacy(m)
	}
}

// serveLegacy takes a message without an envelope.
func (p *pipe) serveLegacy(m *wire.Message) { p.former.Serve(m) }

func (p *pipe) serveLegacyBatch(text []byte) { p.former.ServeBatch(text) }

func (p *pipe) refuseTooLong(e *transport.TooLongError) {
	p.s.g.opts.Metrics.Limit(p.s.name, limits.Body.Key)
	p.s.g.opts.Logger.Warn("message refused: too large", "upstream", p.s.name, "limit", e.Limit)
	why := wire.Errorf(spec.CodeInvalidRequest, "the message is over %d bytes; send less, or %s", e.Limit, limits.Body.Raise())
	p.refuse(p.former.Unread(e.Start, why), why)
}

func (p *pipe) refuse(id wire.ID, e *wire.Error) {
	_ = p.send(wire.AppendError(nil, id, e)) // lost if it fails
}
