package back

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A connListen is a listen stream on a shared connection. The goroutine that reads the
// connection puts changes into its mailbox, which never blocks and is bounded: a change
// that is still pending is not queued again.
type connListen struct {
	p    *conn
	c    *upstreamCall
	mail *fanout.Mailbox

	acked   chan struct{} // closed when granted and refusal are set
	closing chan struct{} // closed by Close
	parting parting
	// conn.mu guards these: its request was written; the server may have forgotten it.
	isSent, inDoubt bool

	granted mcp.Filter
	refusal error // why there is no stream

	// mu guards the fields below.
	mu       sync.Mutex
	opened   bool // acked is closed
	isClosed bool // gone is closed
}

// listen is link.listen on this connection.
func (p *conn) listen(ctx context.Context, c *upstreamCall) (watch.Stream, error) {
	s := &connListen{p: p, c: c, mail: fanout.NewMailbox(fanout.MailboxOptions{}), acked: make(chan struct{}), closing: make(chan struct{}), parting: parting{over: make(chan struct{})}}
	if err := p.awaitParted(ctx); err != nil {
		return nil, err
	}
	if err := p.add(s); err != nil {
		return nil, err
	}
	if err := p.Send(ctx, &c.Call, c.frame); err != nil {
		p.forget(s)
		return nil, err
	}
	if p.sent(s) {
		p.doubt(s)
	}
	select {
	case <-s.acked:
		if s.refusal != nil {
			return nil, s.refusal
		}
		return s, nil
	case <-ctx.Done():
		s.Close()
		return nil, context.Cause(ctx)
	}
}

// add registers a stream. If the connection has ended, it returns an error: nothing was
// sent.
func (p *conn) add(s *connListen) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Calls.Err(); err != nil {
		return &upstream.Failure{Cause: err, Fate: upstream.NotSent, Again: true}
	}
	p.listens[s.c.ID] = s
	for _, o := range p.partings {
		o.parting.late = true
	}
	return nil
}

// forget removes a stream: further messages for it are dropped.
func (p *conn) forget(s *connListen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listens, s.c.ID)
}

// listenOf returns the listen stream with an id from the server, or nil.
func (p *conn) listenOf(id wire.ID) *connListen {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listens[n]
}

func (s *connListen) Honored() mcp.Filter { return s.granted }

// Next implements [watch.Stream].
func (s *connListen) Next() (fanout.Event, error) {
	for {
		if ev, ok := s.mail.Next(); ok {
			return ev, nil
		}
		if reason, ended := s.mail.Ended(); ended {
			return fanout.Event{}, reason
		}
		select {
		case <-s.mail.Ready():
		case <-s.closing:
			return fanout.Event{}, errClosed
		}
	}
}

// Close implements [watch.Stream].
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Cancellation.
func (s *connListen) Close() {
	s.mu.Lock()
	left := s.isClosed
	s.isClosed = true
	s.mu.Unlock()
	if left {
		return
	}
	close(s.closing)
	if s.p.part(s) {
		s.p.cancel(s.c, errClosed)
	}
}

// open handles the acknowledgment, or the reason why there is none. It reports false if
// there was one before.
func (s *connListen) open(granted mcp.Filter, refusal error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return false
	}
	s.opened, s.granted, s.refusal = true, granted, refusal
	close(s.acked)
	return true
}

// end records that no more changes will come. If the stream was not acknowledged, opening
// it fails, unless the server ended it gracefully.
func (s *connListen) end(reason error) {
	refusal := reason
	if reason == watch.ErrEnded {
		refusal = nil
	}
	s.open(mcp.Filter{}, refusal)
	s.mail.End(reason)
}

// answered handles the response to the listen request.
func (s *connListen) answered(e *wire.Error) {
	switch {
	case e == nil:
		s.end(watch.ErrEnded)
	case s.open(mcp.Filter{}, upstream.KeepError(e)):
	default:
		s.mail.End(endOf(e))
	}
}

// change passes a message about a listen stream to it. A message without a subscription id
// belongs to the only stream, if there is only one.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Receiving Notifications.
func (p *conn) change(m *wire.Message) {
	s := p.streamOf(m)
	if s == nil {
		p.heedsParted(m)
		p.skip("change of no stream", m.Method)
		return
	}
	if endsStream(m, s.c) {
		p.forget(s)
		s.end(watch.ErrEnded)
		return
	}
	if granted, ok := protocol.Acknowledgment(m); ok {
		if !s.open(granted, nil) {
			p.skip("second acknowledgment", m.Method)
		}
		return
	}
	granted, opened := s.filter()
	ev, ok := changeOf(m, s.c.scope, granted)
	if !opened || !ok {
		p.skip("not a change that was asked for", m.Method)
		return
	}
	if _, named := protocol.SubscriptionID(m); !named {
		p.link.opts.Quirks.Met(quirks.UntaggedNotice, "")
	}
	s.mail.Put(ev)
}

func (s *connListen) filter() (mcp.Filter, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted, s.opened
}

func (p *conn) streamOf(m *wire.Message) *connListen {
	if m.Method == spec.NotifyCancelled {
		id, _ := wire.ParseID(wire.Get(m.Params, "requestId")) // what is none finds none
		return p.listenOf(id)
	}
	if id, named := protocol.SubscriptionID(m); named {
		return p.listenOf(id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listens) != 1 {
		return nil
	}
	for _, s := range p.listens {
		return s
	}
	return nil
}
