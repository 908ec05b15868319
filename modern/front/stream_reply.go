package front

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// A streamReply is the replyWriter of a listen stream over HTTP whose handler has
// returned. Ten thousand of them are idle, so that it keeps nothing of its request.
type streamReply struct {
	reply // of which it is the replyWriter
	addr  string

	// mu guards what follows, and serializes writes: see httpReply.
	mu    sync.Mutex
	w     *downstream.Stream
	batch batch
}

// takeOver has a listen stream served without the handler, or reports that this can't
// be.
func (p *httpReply) takeOver(serve serveStream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.front.opts.Streams == nil {
		return false
	}
	setStreamHeaders(p.w.Header())
	s := &streamReply{reply: reply{front: p.front, id: p.id}, addr: p.r.RemoteAddr}
	s.writer = s
	taken := p.front.opts.Streams.Take(p.w, p.r, func(ctx context.Context, w *downstream.Stream) {
		s.w = w
		s.run(ctx, serve)
	})
	if taken {
		p.state = finished
	}
	return taken
}

func (p *streamReply) run(ctx context.Context, serve serveStream) {
	if p.comment() != nil {
		return // the client has gone
	}
	if err := serve(ctx, &p.reply); err != nil {
		p.fail(err)
	}
	if context.Cause(ctx) == downstream.ErrStray {
		p.front.opts.Metrics.Limit("stray_bytes")
		p.front.opts.Logger.Warn("listen stream closed: its client goes on sending on the stream's connection",
			"upstream", p.front.opts.Name, "downstream", p.addr)
	}
}

func (p *streamReply) streams() bool     { return true }
func (p *streamReply) peer() string      { return p.addr }
func (p *streamReply) keepAlive() func() { return func() {} } // listen streams do so themselves

func (p *streamReply) listen(ctx context.Context, _ *fanout.Mailbox, serve serveStream) error {
	return serve(ctx, &p.reply)
}

func (p *streamReply) opened(*fanout.Mailbox) (shared bool) { return false }

func (p *streamReply) comment() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writeLocked([]byte(":\n\n"))
}

func (p *streamReply) put(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.batch.add(msg) {
		return nil
	}
	return p.batch.flush(p.writeLocked)
}

func (p *streamReply) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.batch.flush(p.writeLocked)
}

func (p *streamReply) respond(_ int, msg message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch.add(msg.whole())
	if err := p.batch.flush(p.writeLocked); err != nil {
		return err
	}
	return p.w.End()
}

// writeLocked writes events, in bounded time.
func (p *streamReply) writeLocked(events []byte) error {
	// Every connection that net/http serves has deadlines.
	_ = p.w.SetWriteDeadline(time.Now().Add(p.front.opts.WriteTimeout))
	_, err := p.w.Write(events)
	return err
}
