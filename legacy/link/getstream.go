package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// streamWait bounds how long the handshake waits for the GET stream: some servers send
	// no headers before the first message.
	streamWait = 2 * time.Second
	// steady is how long a stream must have been open so that its end does not count as a
	// failed attempt.
	steady = 10 * time.Second
	// maxMissed is how long a stream may stay closed, or a server may be unreachable, before
	// a ping shows whether the session is lost: nothing else would report that the server is
	// gone.
	maxMissed = 30 * time.Second
)

// A getStream is the standalone stream of a session, on which the server sends messages
// that belong to no request. It is reopened whenever it ends, and reports when messages may
// have been lost in the meantime.
//
// Spec: 2025-11-25, basic/transports, Listening for Messages from the Server.
type getStream struct {
	h       *streamable
	stop    context.CancelFunc
	done    chan struct{} // closed when run has returned
	settled wake.Signal   // sent when an attempt has been answered
	again   chan struct{} // closed by retryRefused
	up      atomic.Bool
	begun   time.Time
	down    atomic.Int64 // since when it is not open, in nanoseconds from begun
	no      atomic.Bool  // the first attempt was refused
}

// startStream starts to open the stream. It stops on close, or if the server offers no
// stream.
func startStream(ctx context.Context, h *streamable) *getStream {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := &getStream{
		h:       h,
		stop:    stop,
		done:    make(chan struct{}),
		settled: wake.NewSignal(),
		again:   make(chan struct{}),
		begun:   time.Now(),
	}
	go g.run(ctx)
	return g
}

// await returns when the current attempt has been answered, or after streamWait.
func (g *getStream) await(ctx context.Context) {
	t := time.NewTimer(streamWait)
	defer t.Stop()
	select {
	case <-g.settled:
	case <-g.done:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (g *getStream) isOpen() bool { return g.up.Load() }

// mayOpen reports whether the stream is closed, and is expected to be opened: the server has not
// refused it, nor gone on without it for long.
func (g *getStream) mayOpen() bool {
	return !g.isOpen() && !wake.Closed(g.done) && time.Since(g.begun)-time.Duration(g.down.Load()) < maxMissed
}

// retryRefused tries once more if the server has refused the first attempt, and waits for
// the result.
func (g *getStream) retryRefused(ctx context.Context) {
	close(g.again)
	if g.no.Load() {
		g.await(ctx)
	}
}

func (g *getStream) close() {
	g.stop()
	<-g.done
}

// run keeps the stream open until ctx ends or the server refuses it.
func (g *getStream) run(ctx context.Context) {
	defer close(g.done)
	cut, err := g.first(ctx)
	var again pacer
	for pause := again.after(cut.retry, cut.useful()); err == nil && ctx.Err() == nil; {
		if wake.Wait(ctx, wake.Jitter(pause)) != nil {
			return
		}
		before := cut
		cut, err = g.serve(ctx, before)
		if next := again.after(cut.retry, cut.useful()); cut.trusted || cut.lasted >= steady {
			pause = next
		} else {
			pause = max(next, streamRetries.Next(pause))
		}
		if err == nil {
			cut, err = g.examine(ctx, cut)
		}
	}
}

// first opens the stream before notifications/initialized, and tries once more afterwards
// if the server has refused.
func (g *getStream) first(ctx context.Context) (streamCut, error) {
	cut, err := g.serve(ctx, streamCut{})
	if !errors.Is(err, errNoStream) {
		g.settled.Send() // in case it was never open: the handshake need not wait for the next attempt
		return cut, err
	}
	g.no.Store(true)
	g.settled.Send()
	select {
	case <-g.again:
		return g.serve(ctx, streamCut{})
	case <-ctx.Done():
		return streamCut{}, context.Cause(ctx)
	}
}

// A streamCut describes how a stream ended and where it can be resumed.
type streamCut struct {
	opened bool      // a stream of the session was open before
	asked  bool      // opened, or an earlier attempt was not refused
	silent bool      // the attempt was not answered
	busy   bool      // the server itself put the attempt off
	told   bool      // the log says that the stream can't be opened again
	since  time.Time // when the stream ended; without one, when the server last answered
	lastID string
	retry  time.Duration
	lasted time.Duration
	// brought says that the stream had a message.
	brought bool
	// trusted says that no message is lost if the server replays: it sent event ids and a
	// retry time, and closed the stream itself.
	trusted bool
	refused *upstream.StatusError // with what the attempt was refused, if the session may be lost
}

// useful is an argument of [pacer.after].
func (c streamCut) useful() bool { return c.brought || c.lasted >= steady }

// missed reports whether the session may be lost. A server that never had a stream, and keeps
// answering without one, may do so forever.
func (c streamCut) missed() bool {
	return (c.opened || c.silent) && time.Since(c.since) > maxMissed
}

// serve opens the stream once and reads it to its end. It returns an error if another
// attempt makes no sense.
func (g *getStream) serve(ctx context.Context, before streamCut) (streamCut, error) {
	begun := time.Now()
	reply, err := g.h.e.http.Get(ctx, nil, resuming(g.h.names.Load().get, before.lastID))
	if err != nil {
		before = before.again(begun)
		before.silent = true
		g.h.l.log.Debug("opening the server's stream", "error", transport.Cause(err))
		return before, context.Cause(ctx)
	}
	if reply.Status() != http.StatusOK || !reply.IsStream() {
		reply.Discard()
		return g.refused(before, reply.Status())
	}
	g.opened(before)
	cut := g.read(ctx, reply, before)
	cut.opened, cut.asked, cut.since, cut.lasted = true, true, time.Now(), time.Since(begun)
	g.closed()
	return cut, context.Cause(ctx)
}

// again returns the state after an attempt that got no stream.
func (c streamCut) again(now time.Time) streamCut {
	if c.since.IsZero() || !c.opened && !c.silent {
		c.since = now
	}
	c.trusted, c.brought, c.lasted, c.retry = false, false, 0, defaultRetry
	c.asked, c.silent, c.busy, c.refused = true, false, false, nil
	return c
}

// refused decides what an answer without a stream means. If the server has offered the
// stream in this session before, or did not refuse it, the session may be lost: the
// specification requires 404 for that, but many servers respond with 400. With 405 a server
// says that it offers no stream, unless it has had one.
//
// Spec: 2025-11-25, basic/transports, Session Management.
func (g *getStream) refused(before streamCut, code int) (streamCut, error) {
	status := &upstream.StatusError{Code: code, Note: "the server's stream"}
	mayBeLost := before.asked && g.h.id() != "" && (before.opened || code != http.StatusMethodNotAllowed)
	before = before.again(time.Now())
	switch {
	case mayBeLost && before.opened && code == http.StatusNotFound:
		g.h.l.fail(status)
		return before, status
	case putsOffStream(code):
		before.busy = code < 500
		return before, nil
	case before.lastID != "":
		before.lastID = "" // the server may have discarded the event
		return before, nil
	case mayBeLost:
		before.refused = status // see examine
		return before, nil
	}
	return before, fmt.Errorf("%w: %w", errNoStream, status)
}

// examine finds out whether the session is lost, if an attempt to open the stream leaves that
// open. If it is not, the stream is tried again if there was one, however long the server
// refuses it: what the server keeps for the session would be lost with it.
func (g *getStream) examine(ctx context.Context, cut streamCut) (streamCut, error) {
	if cut.refused == nil && !cut.missed() {
		return cut, nil
	}
	if why := g.lost(ctx, cut); why != nil {
		g.h.l.fail(why)
		return cut, why
	}
	switch {
	case cut.refused != nil && !cut.opened:
		return cut, fmt.Errorf("%w: %w", errNoStream, cut.refused)
	case !cut.told:
		cut.told = true
		g.h.l.log.Warn("the server's stream can't be opened, and is tried again; the session goes on, " +
			"but changes and questions may be missed meanwhile")
	}
	return cut, nil
}

// lost asks the server with a ping whether the session is lost, and returns why it is, or nil.
// A ping that is put off shows nothing. One that does not reach the server shows that it is gone,
// unless it has just put off the stream.
func (g *getStream) lost(ctx context.Context, cut streamCut) error {
	err := g.h.l.ping(ctx)
	status, answered := errors.AsType[*upstream.StatusError](err)
	gone := !answered || status.Code >= 500
	switch {
	case !g.h.l.Alive():
		return g.h.l.Err() // the ping has ended it, or a call
	case err == nil, gone && cut.busy, !gone && putsOff(status.Code):
		return nil
	case cut.refused != nil:
		return cut.refused
	case gone:
		return fmt.Errorf("its stream could not be opened again for %v", maxMissed)
	}
	return status
}

// read passes every message of an open stream to the Link until the stream ends.
func (g *getStream) read(ctx context.Context, reply *upstream.Reply, before streamCut) streamCut {
	reply.Busy = g.h.l.Calls.Busy
	cut := streamCut{retry: defaultRetry}
	m, err := reply.Next()
	for ; err == nil; m, err = reply.Next() {
		cut.brought = true
		answers := m.Kind() == wire.Response
		switch needed := g.h.l.inbox.Receive(ctx, m, nil); {
		case !needed:
			reply.Useless()
		case answers:
			g.h.l.opts.Quirks.Met(quirks.AnswerElsewhere, "")
		}
	}
	cut.lastID = reply.EventID()
	retry, told := reply.Retry()
	if told {
		cut.retry = retry
	}
	f := upstream.AsFailure(err)
	cut.trusted = told && cut.lastID != "" && f != nil && f.Cause == upstream.ErrUnanswered
	switch {
	case f != nil && !f.Again: // the message is too large
		cut.lastID = "" // else the server would send it again
	case cut.lastID == "":
		cut.lastID = before.lastID
	}
	return cut
}

// opened reports that the stream is open, and whether messages may have been lost before.
func (g *getStream) opened(before streamCut) {
	g.up.Store(true)
	g.settled.Send()
	g.h.l.sink.ListenChanged(true, before.opened && !before.trusted)
}

func (g *getStream) closed() {
	g.down.Store(int64(time.Since(g.begun)))
	g.up.Store(false)
	g.h.l.sink.ListenChanged(false, false)
}

var errNoStream = errors.New("the server does not offer a stream")
