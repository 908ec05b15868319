package front

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A takenStream is the outlet of a listen stream over HTTP whose handler has
// returned. Ten thousand of them are idle, so that it keeps nothing of its request.
type takenStream struct {
	reply // of which it is the outlet
	addr  string

	// mu guards what follows, and serializes writes: see response.
	mu    sync.Mutex
	w     *transport.Stream
	batch batch
}

// takeOver has a listen stream served without the handler, or reports that this can't
// be.
func (p *response) takeOver(serve serveStream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f.opts.Streams == nil {
		return false
	}
	setStreamHeaders(p.w.Header())
	s := &takenStream{reply: reply{f: p.f, id: p.id}, addr: p.r.RemoteAddr}
	s.out = s
	taken := p.f.opts.Streams.Take(p.w, p.r, func(ctx context.Context, w *transport.Stream) {
		s.w = w
		s.run(ctx, serve)
	})
	if taken {
		p.state = finished
	}
	return taken
}

func (p *takenStream) run(ctx context.Context, serve serveStream) {
	if p.comment() != nil {
		return // the client has gone
	}
	if err := serve(ctx, &p.reply); err != nil {
		p.fail(err)
	}
	if context.Cause(ctx) == transport.ErrStray {
		p.f.opts.Metrics.Limit("stray_bytes")
		p.f.opts.Logger.Warn("listen stream closed: its client goes on sending on the stream's connection",
			"upstream", p.f.opts.Name, "downstream", p.addr)
	}
}

func (p *takenStream) streams() bool     { return true }
func (p *takenStream) peer() string      { return p.addr }
func (p *takenStream) keepAlive() func() { return func() {} } // listen streams do so themselves

func (p *takenStream) listen(ctx context.Context, _ *fanout.Mailbox, serve serveStream) error {
	return serve(ctx, &p.reply)
}

func (p *takenStream) opened(*fanout.Mailbox) (shared bool) { return false }

func (p *takenStream) comment() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writeLocked([]byte(":\n\n"))
}

func (p *takenStream) put(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.batch.add(msg) {
		return nil
	}
	return p.batch.flush(p.writeLocked)
}

func (p *takenStream) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.batch.flush(p.writeLocked)
}

func (p *takenStream) respond(_ int, msg message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch.add(msg.whole())
	if err := p.batch.flush(p.writeLocked); err != nil {
		return err
	}
	return p.w.End()
}

// writeLocked writes events, in bounded time.
func (p *takenStream) writeLocked(events []byte) error {
	// Every connection that net/http serves has deadlines.
	_ = p.w.SetWriteDeadline(time.Now().Add(p.f.opts.WriteTimeout))
	_, err := p.w.Write(events)
	return err
}
