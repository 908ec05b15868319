package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// A flight is one request to a handler that may ask back: it outlives the
// response that it began with. While a response is attached, progress goes there
// and questions end it; between responses the flight is parked, its handler
// waiting in Ask, until a retry attaches the next.
//
// It is the mcp.Caller of its request.
type flight struct {
	// Set by depart, read-only after.
	hangar *hangar
	id     uint64
	req    *mcp.Request
	bind   [32]byte
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the handler has returned

	asked chan struct{} // capacity 1: questions wait to be put to the client

	// Written before done is closed, read-only after; res is released by land.
	res *mcp.Result
	err error

	// mu guards the fields below. It is held for list work only, and may be held
	// when hangar.mu is taken.
	mu     sync.Mutex
	room   mcp.Room        // of the request
	reply  *reply          // nil while parked
	held   heldNotes       // what came while it was
	token  json.RawMessage // the progress token of the last request attached
	open   []*inquiry
	keys   int         // made so far
	round  uint32      // the last one put to the client
	expiry *time.Timer // nil unless parked
	ended  error       // why no more questions are taken; nil in flight
}

// An inquiry is one question that waits for its answer.
type inquiry struct {
	key      string
	question mcp.InputRequest
	answer   chan mcp.InputResponse // capacity 1
}

// expiryGrace is how long a call that expired has to end by itself.
const expiryGrace = time.Second

// errExpired is the cause with which a flight ends that nobody came back for.
var errExpired = errors.New("the client did not answer in time")

// Notify passes a message on to the response of the moment, progress under the
// token of its request. Between responses it is held for the next.
func (fl *flight) Notify(ctx context.Context, n mcp.Notification) error {
	fl.mu.Lock()
	p, token := fl.reply, fl.token
	isHeld := fl.ended == nil && fl.held.take(n)
	short := fl.held.notes.Short()
	fl.mu.Unlock()
	if short {
		_ = fl.held.notes.Room.Refuse() // counted and logged; the message is lost, as others beyond the bound
	}
	if isHeld {
		return nil
	}
	return fl.tell(ctx, p, token, n)
}

// tell sends a message on a response, which may be nil.
func (fl *flight) tell(ctx context.Context, p *reply, token json.RawMessage, n mcp.Notification) error {
	isProgress := n.Method == spec.NotifyProgress
	if p == nil || isProgress && token == nil {
		fl.hangar.f.opts.Metrics.Dropped("call is parked")
		return nil
	}
	if isProgress && !bytes.Equal(token, fl.req.ProgressToken) {
		n.Params = wire.AppendEdited(nil, n.Params, wire.Edit{Name: spec.MetaProgressToken, Value: token})
	}
	return p.Notify(ctx, n)
}

// deliver sends on a response what was held for it. What comes meanwhile waits its
// turn.
func (fl *flight) deliver(ctx context.Context, p *reply) {
	for {
		fl.mu.Lock()
		token := fl.token
		notes, lost := fl.held.release()
		fl.mu.Unlock()
		fl.reportLost(lost)
		if len(notes) == 0 {
			return
		}
		for _, n := range notes {
			_ = fl.tell(ctx, p, token, n) // attend hears of a client that has gone
		}
	}
}

// reportLost tells of messages that reach nobody because the call was parked.
func (fl *flight) reportLost(n int) {
	if n == 0 {
		return
	}
	for range n {
		fl.hangar.f.opts.Metrics.Dropped("call is parked")
	}
	fl.hangar.f.opts.Logger.Warn("messages of a call that waits for answers were lost", "upstream", fl.hangar.f.opts.Name,
		"method", fl.req.Method, "messages", n, "limit", mcp.MaxBacklog)
}

// RequestInput puts questions to the client with the next input_required and waits for
// the answers. A question whose ctx ends leaves the round.
func (fl *flight) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	waiting, err := fl.pose(qs)
	if err != nil {
		return nil, err
	}
	defer fl.withdraw(waiting)
	answers := make([]mcp.InputResponse, len(waiting))
	for i, q := range waiting {
		select {
		case answers[i] = <-q.answer:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return answers, nil
}

func (fl *flight) pose(qs []mcp.InputRequest) ([]*inquiry, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.ended != nil {
		return nil, fl.ended
	}
	if err := fl.hangar.book(fl); err != nil {
		return nil, err
	}
	waiting := make([]*inquiry, len(qs))
	for i, q := range qs {
		fl.keys++
		waiting[i] = &inquiry{key: fmt.Sprintf("q%d", fl.keys), question: q, answer: make(chan mcp.InputResponse, 1)}
	}
	fl.open = append(fl.open, waiting...)
	fl.knockLocked()
	return waiting, nil
}

// withdraw takes questions back that are not open any more, or not wanted.
func (fl *flight) withdraw(qs []*inquiry) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.open = slices.DeleteFunc(fl.open, func(q *inquiry) bool { return slices.Contains(qs, q) })
}

func (fl *flight) knockLocked() {
	select {
	case fl.asked <- struct{}{}:
	default: // told already
	}
}

// run serves the request. It ends with the handler; the hangar waits for it.
func (fl *flight) run(ctx context.Context) {
	defer close(fl.done)
	fl.res, fl.err = fl.hangar.f.opts.Handler.Serve(ctx, fl.req, fl)
}

// attend is a response's part in a flight: it returns when the flight has ended,
// when its questions have ended the response, or when the client has gone,
// which cancels the request.
func (fl *flight) attend(ctx context.Context, req *mcp.Request, p *reply) error {
	stop := p.out.keepAlive()
	defer stop()
	fl.deliver(ctx, p)
	for {
		select {
		case <-ctx.Done():
			fl.abandon(context.Cause(ctx))
			return context.Cause(ctx)
		case <-fl.done:
			stop()
			return fl.land(req, p)
		case <-fl.asked:
		}
		if !fl.gather(ctx) {
			continue // ctx or done says why
		}
		if round := fl.park(); round != nil {
			stop()
			return p.message(round)
		}
	}
}

// gather waits a moment: questions that come together go out together.
func (fl *flight) gather(ctx context.Context) bool {
	t := time.NewTimer(fl.hangar.f.opts.Gather)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-fl.done:
	}
	return false
}

// park detaches the response and returns the result that ends it, or nil if the
// questions were withdrawn meanwhile.
func (fl *flight) park() []byte {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if len(fl.open) == 0 || fl.ended != nil {
		return nil
	}
	p := fl.reply
	fl.reply = nil
	fl.held.on = true
	fl.round++
	ttl := fl.hangar.f.opts.ParkedTTL
	fl.expiry = time.AfterFunc(ttl, fl.expire)
	fl.hangar.f.opts.Metrics.Parked(1)
	state := fl.hangar.f.opts.Sealer.Seal(State{
		Call: fl.id, Round: fl.round, Binding: fl.bind,
		Expires: time.Now().Add(ttl + time.Second), // whole seconds must not end before expiry
	})
	return appendInputRequired(nil, p.id, fl.open, state, fl.hangar.serverInfo(fl.req))
}

// resume gives a round's answers to the handler and attaches the next response.
// It refuses a round that was answered before.
func (fl *flight) resume(req *mcp.Request, round uint32, p *reply) error {
	responses := wire.Get(req.Params, "inputResponses")
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.reply != nil || fl.round != round || fl.ended != nil || !fl.expiry.Stop() {
		return ErrBadState
	}
	fl.expiry = nil
	fl.hangar.f.opts.Metrics.Parked(-1)
	fl.reply, fl.token = p, req.ProgressToken
	fl.open = slices.DeleteFunc(fl.open, func(q *inquiry) bool {
		text := wire.Get(responses, q.key)
		if !protocol.WellFormed(q.question.Method, text) {
			return false // it is asked for again
		}
		q.answer <- mcp.InputResponse{Result: slices.Clone(text)}
		return true
	})
	if len(fl.open) > 0 {
		fl.knockLocked()
	}
	return nil
}

// land writes what the handler returned, and lets go of the flight.
func (fl *flight) land(req *mcp.Request, p *reply) error {
	fl.close(errFinished)
	fl.hangar.remove(fl)
	if fl.err != nil {
		return fl.err
	}
	defer fl.res.Release()
	return p.result(req, fl.res)
}

// expire ends a parked flight that nobody came back for. It runs on the timer's
// goroutine, and ends with the handler that it cancels.
func (fl *flight) expire() {
	fl.hangar.f.opts.Logger.Info("call given up: its client did not come back with answers", "upstream", fl.hangar.f.opts.Name, "method", fl.req.Method)
	fl.hangar.f.opts.Metrics.Dropped("parked call expired")
	fl.close(errExpired)
	// The server hears that nobody will answer before it hears that nobody wants
	// the result.
	t := time.NewTimer(expiryGrace)
	defer t.Stop()
	select {
	case <-fl.done:
	case <-t.C:
	}
	fl.abandon(errExpired)
}

// abandon cancels the request, waits for its handler, and lets go of the flight.
func (fl *flight) abandon(cause error) {
	fl.close(cause)
	fl.cancel(cause)
	<-fl.done
	fl.res.Release()
	fl.hangar.remove(fl)
}

// close takes no more questions and answers the open ones, so that the server
// hears that nobody will.
func (fl *flight) close(cause error) {
	fl.mu.Lock()
	notes, lost := fl.held.release()
	defer fl.reportLost(len(notes) + lost)
	defer fl.mu.Unlock()
	fl.held.on = false
	if fl.ended == nil {
		fl.ended = cause
	}
	fl.reply = nil
	if fl.expiry != nil {
		fl.expiry.Stop()
		fl.expiry = nil
		fl.hangar.f.opts.Metrics.Parked(-1)
	}
	for _, q := range fl.open {
		q.answer <- unanswered(q.question.Method, cause)
	}
	fl.open = nil
}

// vacate gives the flight's memory back.
func (fl *flight) vacate() {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.room.Release()
}

// unanswered is the answer to a question that nobody will answer.
func unanswered(method string, cause error) mcp.InputResponse {
	if method == spec.MethodElicit {
		return mcp.InputResponse{Result: []byte(`{"action":"cancel"}`)}
	}
	return mcp.InputResponse{Err: wire.Errorf(spec.CodeInternal, "no answer from the client: %v", cause)}
}
