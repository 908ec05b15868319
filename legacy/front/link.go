package front

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// endedUpstream is why a session of a client ends whose own session upstream has.
const endedUpstream = "its session upstream ended"

// linkUp opens the client's own session upstream, if that is of the same era. answer is
// what the server says to initialize; d.link is nil if it refused.
func (f *Front) linkUp(ctx context.Context, d *downstream, req *mcp.Request, m *wire.Message) (answer []byte, err error) {
	if f.opts.Linker == nil {
		return nil, nil
	}
	d.told = d.streams.keep() // before anything is heard
	err = f.whenStarted(ctx, req, func(ctx context.Context) error {
		d.link, answer, err = f.opts.Linker.Link(ctx, req, m, d)
		for errors.Is(err, mcp.ErrFull) && f.sessions.makeRoom(ctx, d.share) {
			d.link, answer, err = f.opts.Linker.Link(ctx, req, m, d)
		}
		return err
	})
	if err != nil || d.link == nil {
		d.streams.forget(d.told)
		return answer, err
	}
	version, _ := wire.GetString(wire.Get(answer, "result"), "protocolVersion")
	d.revision = spec.Revision(version)
	return answer, nil
}

// Hear implements [mcp.Hearer].
func (d *downstream) Hear(ctx context.Context, text []byte, anyway bool) error {
	if d.send != nil {
		return d.send(text)
	}
	if anyway && !d.told.isRead() {
		if c := d.newestCall(); c != nil {
			return c.out.message(ctx, text)
		}
	}
	return d.told.put(ctx, text, false)
}

// Idle implements [mcp.Hearer]. On a connection the client is there as long as that
// is.
func (d *downstream) Idle() bool { return d.send == nil && d.f.sessions.isIdle(d) }

// newestCall returns the call in flight whose client is likeliest to hear of it: the
// last one that a connection waits for, else the last that a client may come back to. It
// returns nil if there is neither.
func (d *downstream) newestCall() (newest *incoming) {
	d.mu.Lock()
	calls := slices.Collect(maps.Values(d.calls))
	d.mu.Unlock()
	best := unheard
	for _, c := range calls {
		p, ok := c.out.(*post)
		if !ok {
			continue // a connection's, which is not asked for
		}
		if at := p.hearing(); at > best || at == best && newest != nil && c.n > newest.n {
			newest, best = c, at
		}
	}
	return newest
}

// A hearing says whether what precedes the answer to a POST reaches the client.
type hearing uint8

const (
	unheard hearing = iota // its connection has gone before there was a stream
	resumed                // if the client comes back
	heard
)

func (p *post) hearing() hearing {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stream == nil && p.decided:
		return unheard
	case p.stream == nil || p.stream.isRead():
		return heard
	}
	return resumed
}

// follow ends the session with its link: lost is called unless the session ends first.
func (d *downstream) follow(lost func()) {
	d.spawn(func() { // ends with the session, or the link
		ctx, cancel := d.life()
		defer cancel()
		select {
		case <-d.link.Done():
			lost()
		case <-ctx.Done():
		}
	})
}

// beginLinked passes a request on. Its answer goes to out.
func (d *downstream) beginLinked(m *wire.Message, out outlet) {
	c := &incoming{d: d, id: m.ID, out: out, cancel: func(error) {}}
	if err := d.admit(c, m); err != nil {
		c.refuse(err)
		return
	}
	d.link.Call(m, c)
}

// Message implements [mcp.Outcome].
func (c *incoming) Message(ctx context.Context, text []byte) error { return c.out.message(ctx, text) }

// Answer implements [mcp.Outcome].
func (c *incoming) Answer(text []byte, _ error) {
	defer c.d.running.Done()
	c.d.leave(c) // the client may use the id again at once
	c.respond(text)
}

// Lost implements [mcp.Outcome].
func (c *incoming) Lost(err error) {
	defer c.d.running.Done()
	c.d.leave(c)
	p, isPost := c.out.(*post)
	switch {
	case errors.Is(err, mcp.ErrCancelled):
		c.out.silent()
	case !errors.Is(err, mcp.ErrLinkEnded):
		c.out.answer(c.failure(err))
	case isPost:
		p.gone(sessionGone(c.id, err))
	default:
		c.out.answer(response{msg: sessionGone(c.id, err)})
	}
}

// refuse answers a request that was not entered, which may have met its session's end.
func (c *incoming) refuse(err error) {
	r := c.failure(err)
	if p, ok := c.out.(*post); ok && mcp.WireError(err).Code == spec.CodeSessionNotFound {
		p.gone(r.msg)
		return
	}
	c.out.answer(r)
}

// sessionGone is what a client is told that has to initialize anew.
func sessionGone(id wire.ID, err error) []byte {
	return wire.AppendError(nil, id, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
}

// gone is answer for a call whose session has ended upstream: its status is the only
// signal that clients heed.
func (p *post) gone(msg []byte) {
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.settle(&response{msg: msg})
}

// status is that of an answer that is no stream.
func (p *post) status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost && !p.batch {
		return http.StatusNotFound
	}
	return http.StatusOK
}

// passPosted passes on what has no answer.
func (d *downstream) passPosted(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	switch err := d.link.Send(context.WithoutCancel(r.Context()), m); { // it is passed on though its sender leaves
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, mcp.ErrLinkEnded):
		d.f.sessions.end(d, endedUpstream)
		writeError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
	default:
		d.f.log.Warn("message of client was not delivered", "session", d.name, "error", err)
		writeError(w, http.StatusBadGateway, wire.ID{}, mcp.WireError(err))
	}
}

// pass passes on what has no answer, where nobody could be told of a failure. The
// session's end is not held up by a server that does not take it.
func (d *downstream) pass(m *wire.Message) {
	sent := make(chan struct{})
	if d.spawn(func() { d.deliver(m, sent) }) { // ends with the session, or as Send is bounded
		d.link.Await(m, sent)
	}
}

func (d *downstream) deliver(m *wire.Message, sent chan<- struct{}) {
	defer close(sent)
	ctx, cancel := d.life()
	defer cancel()
	if err := d.link.Send(ctx, m); err != nil {
		d.f.log.Warn("message of client was not delivered", "session", d.name, "error", err)
	}
}
