package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// streamWait bounds how long the handshake waits for the GET stream: some
	// servers send no headers before the first message.
	streamWait = 2 * time.Second
	// steady is how long a stream lives before its end counts as the first.
	steady = 10 * time.Second
	// maxMissed is how long a stream that was open, or a server that answers, may
	// be missed: after it the session counts as lost, since nobody would say so if
	// the server is gone.
	maxMissed = 30 * time.Second
)

// A getStream is the standalone stream of a session, on which the server sends
// what belongs to no request. It is opened again whenever it ends, and tells the
// profile's watch what may have been missed meanwhile.
//
// Spec: 2025-11-25, basic/transports, Listening for Messages from the Server.
type getStream struct {
	h       *streamable
	stop    context.CancelFunc
	done    chan struct{} // closed when run has returned
	settled wake.Signal   // an attempt was answered
	again   chan struct{} // closed by retryRefused
	up      atomic.Bool
	no      atomic.Bool // the first attempt was refused
}

// startStream starts to ask for the stream. It ends with close, or when the
// server does not offer one.
func startStream(ctx context.Context, h *streamable) *getStream {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := &getStream{
		h:       h,
		stop:    stop,
		done:    make(chan struct{}),
		settled: wake.NewSignal(),
		again:   make(chan struct{}),
	}
	go g.run(ctx)
	return g
}

// await returns when the attempt under way is answered, or after streamWait.
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

// retryRefused asks once more, and awaits the outcome, if the server has refused
// before.
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

// run keeps the stream open until ctx ends or the server does not want it.
func (g *getStream) run(ctx context.Context) {
	defer close(g.done)
	cut, err := g.first(ctx)
	var again pacer
	for pause := again.after(cut.retry, cut.useful()); err == nil && ctx.Err() == nil; {
		if backoff.Wait(ctx, backoff.Jitter(pause)) != nil {
			return
		}
		before := cut
		cut, err = g.serve(ctx, before)
		if next := again.after(cut.retry, cut.useful()); cut.trusted || cut.lasted >= steady {
			pause = next
		} else {
			pause = max(next, streamRetries.Next(pause))
		}
		if err == nil && cut.missed() {
			g.h.l.fail(fmt.Errorf("its stream could not be opened again for %v", maxMissed))
			return
		}
	}
}

// first asks before notifications/initialized, and once more after it if the
// server refused.
func (g *getStream) first(ctx context.Context) (streamCut, error) {
	cut, err := g.serve(ctx, streamCut{})
	if !errors.Is(err, errNoStream) {
		g.settled.Send() // in case it was never open: nobody need wait for the next
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

// A streamCut says how a stream ended and from where it can go on.
type streamCut struct {
	opened bool      // any stream of the session was open before
	asked  bool      // opened, or the server was asked before and did not say no
	silent bool      // it was not even answered
	since  time.Time // when the stream ended, or the server was last heard of without one
	lastID string
	retry  time.Duration
	lasted time.Duration
	// brought says that there was a message on it.
	brought bool
	// trusted says that nothing is missed if the server replays: it gave ids and
	// closed the stream itself, having said when to come back.
	trusted bool
}

// useful is what [pacer.after] wants to know.
func (c streamCut) useful() bool { return c.brought || c.lasted >= steady }

// missed reports whether it is time to give up. A server that keeps answering
// that it has no stream yet may go on so.
func (c streamCut) missed() bool {
	return (c.opened || c.silent) && time.Since(c.since) > maxMissed
}

// serve opens the stream once and reads it to its end. The error says that there
// is no point in another attempt.
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

// again returns where to go on from after an attempt that had no stream.
func (c streamCut) again(now time.Time) streamCut {
	if c.since.IsZero() || !c.opened && !c.silent {
		c.since = now
	}
	c.trusted, c.brought, c.lasted, c.retry = false, false, 0, defaultRetry
	c.asked, c.silent = true, false
	return c
}

// refused decides what a server means that answers without a stream. One that
// offered it under this session, or did not say no, and does so now has lost the
// session: the specification's word for that is 404, many servers say 400.
//
// Spec: 2025-11-25, basic/transports, Session Management.
func (g *getStream) refused(before streamCut, code int) (streamCut, error) {
	status := &upstream.StatusError{Code: code, Note: "the server's stream"}
	lost := before.asked && g.h.id() != ""
	before = before.again(time.Now())
	switch {
	case lost && code == http.StatusNotFound:
		g.h.l.fail(status)
		return before, status
	case code >= 500, code == http.StatusConflict, code == http.StatusTooManyRequests:
		return before, nil // the last one is not noticed gone, say
	case before.lastID != "":
		before.lastID = "" // it may be that it has forgotten
		return before, nil
	case lost:
		g.h.l.fail(status)
		return before, status
	}
	return before, fmt.Errorf("%w: %w", errNoStream, status)
}

// read hands every message of an open stream to the Link until it ends.
func (g *getStream) read(ctx context.Context, reply *upstream.Reply, before streamCut) streamCut {
	reply.Busy = g.h.l.Calls.Busy
	cut := streamCut{retry: defaultRetry}
	m, err := reply.Next()
	for ; err == nil; m, err = reply.Next() {
		cut.brought = true
		if !g.h.l.inbox.Receive(ctx, m, nil) {
			reply.Useless()
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
	case f != nil && !f.Again: // it is too large
		cut.lastID = "" // or it would come again
	case cut.lastID == "":
		cut.lastID = before.lastID
	}
	return cut
}

// opened tells that the stream is open: first that it is, then what the time
// without it may have hidden.
func (g *getStream) opened(before streamCut) {
	g.up.Store(true)
	g.settled.Send()
	g.h.l.sink.ListenChanged(true, before.opened && !before.trusted)
}

func (g *getStream) closed() {
	g.up.Store(false)
	g.h.l.sink.ListenChanged(false, false)
}

var errNoStream = errors.New("the server does not offer a stream")
