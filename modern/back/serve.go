package back

import (
	"context"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// A servedRequest is a client's request, from the first time it is sent upstream to its
// last response.
type servedRequest struct {
	// Set by Serve, read-only after.
	b      *Back
	req    *mcp.Request
	caller mcp.Caller
	level  spec.LogLevel // the log level that its caller wants
	clock  mcp.Clock
	in     mcp.Intake // reserves memory for its responses, one after the other
	// bound says that the context of its exchanges is one of the link's.
	bound bool
	// listens says that it is a listen request, whose notifications all go to its caller.
	// It has no clock.
	listens bool
	// streams says that its method is unknown: it may be a stream, whose clock every
	// message restarts. Later messages never replace earlier ones.
	streams bool
	// declares says that a legacy client's call declares the tasks extension, so that its server may
	// make a task of it, which is run here.
	declares bool
	held     *upstream.Held // of the process that it was sent to; nil if there is none

	// place is for the task that the server may make of a call, to be held by its client; nil if
	// the client holds none. inLegacyForm says that the result is that of a legacy server.
	place        *upstream.Task
	inLegacyForm bool
}

// Serve implements [mcp.Handler].
//
// It sends a request a second time only if the first one can't have had an effect: nothing
// was sent, the server refused it before processing, or the method only reads. For a
// legacy client it handles input_required results itself, in rounds, and runs the task that a
// server makes of a tool that demands one; a modern client gets them unchanged.
func (b *Back) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if b.held.serves(req) {
		return b.held.serve(ctx, req, caller)
	}
	if err := b.refuseMethod(req); err != nil {
		return nil, err
	}
	if req.Method == spec.MethodListen {
		return b.serveListen(ctx, req, caller)
	}
	s := &servedRequest{b: b, req: req, caller: caller, level: req.LogLevel}
	s.in.Use(req.Memory, req.Share)
	client := ctx
	ctx, cancel := b.link.bind(ctx)
	s.bound = true
	s.declareIfKnown()
	s.takePlace()
	defer s.dropPlace()
	s.streams = req.Era == spec.Modern && spec.Undefined(req.Method)
	s.clock.Start(b.opts.Settings.Timeouts.Silence(req.Method), s.maxTime(), func() { cancel(upstream.ErrTooLong) })
	a, err := s.run(ctx)
	s.clock.Stop()
	if err != nil {
		defer cancel(nil)
		s.in.Close()
		if client.Err() != nil {
			return nil, context.Cause(client) // it has left, or has cancelled the call
		}
		return nil, s.clientError(ctx, err)
	}
	// Cancel only after the release: a stream may have to be read to its end.
	release := a.Release
	res := mcp.NewResult(a.Result, func() {
		if release != nil {
			release()
		}
		s.in.Close()
		cancel(nil)
	})
	if res.Outline, res.Extra, res.Era = a.Outline, a.Extra, spec.Modern; s.inLegacyForm {
		res.Era = spec.Legacy
	}
	res.StateLost = s.stateLost()
	return res, nil
}

// stateLost returns why the client has lost state; empty if it has not.
func (s *servedRequest) stateLost() string {
	if s.held == nil {
		return s.b.opts.Owed(s.req)
	}
	return s.held.Owed(s.req)
}

// serveListen serves a client's own listen request. x gets all notifications of its
// stream; the result is the server's, at the end of the stream. It has no time-out.
func (b *Back) serveListen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &servedRequest{b: b, req: req, caller: caller, listens: true}
	a, err := s.send(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, b.clientError(req.Method, upstream.MarkUnsent(err, false))
	case a.Err != nil:
		return nil, b.upstreamError(req, a.TakeError())
	}
	defer a.Free()
	res := mcp.NewResult(upstream.Keep(a.Result), nil)
	res.Extra, res.Era = upstream.Keep(a.Extra), spec.Modern
	return res, nil
}

// refuseMethod refuses methods that don't exist in this era, so that no server gets them.
// Only modern clients can use methods of tasks.
//
// Spec: tasks extension 2026-07-28, Supported Methods.
func (b *Back) refuseMethod(req *mcp.Request) error {
	passes := spec.OnTask(req.Method) && !slices.Contains(b.hiddenFrom(req.Era), spec.ExtensionTasks)
	if spec.LegacyOnly(req.Method) || strings.HasPrefix(req.Method, spec.MethodTasksPrefix) && !passes {
		return mcp.Refuse(spec.CodeMethodNotFound, "method %q does not exist in revision %s, which the server speaks", req.Method, spec.LatestModern)
	}
	return nil
}

// run sends the request until it has its last response. The error is the server's as a
// *wire.Error, an *upstream.Failure, or the cause with which ctx ended.
func (s *servedRequest) run(ctx context.Context) (upstream.Response, error) {
	var more []wire.Edit // what the round adds to the params
	for round := 0; ; round++ {
		a, err := s.send(ctx, more)
		if err != nil {
			return a, upstream.MarkUnsent(err, round > 0)
		}
		if a.Err != nil {
			return upstream.Response{}, s.b.upstreamError(s.req, a.TakeError())
		}
		kind, typed := resultType(&a)
		if kind == spec.ResultInputRequired && s.req.Era == spec.Modern {
			s.req.Trace.Event(trace.InputRequired, "")
			s.req.Trace.Note(spec.ResultInputRequired, nil)
		}
		if !typed {
			s.b.opts.Doubt("it answered " + s.req.Method + " with a result without resultType")
		}
		switch {
		case s.req.Era == spec.Modern || !typed || kind == spec.ResultComplete:
			return s.complete(a), nil
		case kind == spec.ResultTask && s.declares:
			made := upstream.Keep(a.Result)
			a.Free()
			s.in.Next()
			if s.place != nil {
				return s.hold(made)
			}
			return s.runTask(ctx, made)
		case kind != spec.ResultInputRequired:
			a.Free()
			return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q answered %s with a result of type %q, which clients of this revision don't know", s.b.opts.Name, s.req.Method, mcp.Shorten(kind))
		case round == maxRounds:
			a.Free()
			return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q requested input in the %dth round of %s, the limit is %d", s.b.opts.Name, round+1, s.req.Method, maxRounds)
		}
		asked := upstream.Keep(a.Result)
		a.Free()
		s.in.Next()
		if more, err = s.gatherInput(ctx, asked, round); err != nil {
			return upstream.Response{}, err
		}
		s.clock.Restart()
	}
}

// resultType returns the resultType of a result, and whether it has one.
//
// Spec: 2026-07-28, basic/index, ResultType.
func resultType(a *upstream.Response) (string, bool) {
	v := a.Outline.Get(a.Result, "resultType")
	return wire.Unquote(v), v != nil
}

// complete processes the last response.
func (s *servedRequest) complete(a upstream.Response) upstream.Response {
	if s.place != nil {
		return s.keep(a)
	}
	if s.req.Method == spec.MethodToolsList {
		if page, changed := s.b.learn(s.req.Profile.Scope, a.Result); changed {
			a.Result, a.Outline = page, nil
		}
	}
	return a
}

// remedies are the ways to make a server accept a request that it refused before
// processing. Each is tried once.
type remedies struct {
	repeated     bool // after a failure of the connection
	renegotiated bool
	relisted     bool
	renamed      bool
}

// send sends the request, with the members that a round adds, and returns the response. It
// sends the request again if that can help and is safe.
func (s *servedRequest) send(ctx context.Context, more []wire.Edit) (upstream.Response, error) {
	var tried remedies
	for {
		a, err := s.attempt(ctx, more)
		switch {
		case err == nil && a.Err == nil:
			if tried.renamed && s.b.rawNames.Load() {
				s.b.opts.Quirks.Met(quirks.EncodedName, "")
			}
			return a, nil
		case err == nil && !s.remedy(ctx, &tried, a.Err):
			return a, nil
		case err == nil:
			s.req.Trace.Event(trace.Repeated, a.Err.Message)
			a.Free()
			s.in.Next()
			continue
		}
		// A round is not repeated: its requestState may be valid only once.
		f := upstream.AsFailure(err)
		if f == nil || tried.repeated || ctx.Err() != nil || !f.Repeatable(s.req.Method) || more != nil && f.Fate == upstream.MayHaveRun {
			return a, err
		}
		tried.repeated = true
		s.b.log.Info("repeating request", "method", s.req.Method, "cause", f)
		s.req.Trace.Event(trace.Repeated, f.Error())
	}
}

// attempt sends the request once.
func (s *servedRequest) attempt(ctx context.Context, more []wire.Edit) (upstream.Response, error) {
	id := s.b.lastID.Add(1)
	var of upstream.Call
	of.ID, of.Method = id, s.req.Method
	s.b.opts.Observe(&of, s.req.Trace, spec.Modern, s.b.revision())
	e := s.b.envelopeOf(s.req, s.level, id)
	e.trace = of.Exchange
	if s.declares {
		e.capabilities = mcp.WithTasks(e.capabilities)
	}
	c := s.b.call(id, s.req, e, more)
	c.parent, c.In = s, &s.in
	c.Exchange.Sent(c.frame)
	a, err := s.b.link.exchange(ctx, c)
	s.b.opts.Ended(&of, &a, err)
	s.b.availability.Note(ctx, err)
	return a, err
}

// remedy reacts to an error with which a server refused a request before processing it,
// and reports whether to send the request again.
func (s *servedRequest) remedy(ctx context.Context, tried *remedies, e *wire.Error) bool {
	switch {
	case e.Code == spec.CodeUnsupportedVersion && !tried.renegotiated:
		tried.renegotiated = true
		return s.b.renegotiated(e)
	case s.declareFor(e):
		return true
	case e.Code != spec.CodeHeaderMismatch || !s.b.overHTTP():
		return false
	}
	name, _ := protocol.NameOf(s.req.Method, s.req.Params)
	if s.req.Method == spec.MethodToolsCall && !tried.relisted {
		tried.relisted = true
		if s.b.relist(ctx, s.req.Profile, name) {
			return true
		}
	}
	if spec.EncodeHeader(name) == name || !spec.PassesRaw(name) || tried.renamed {
		return false
	}
	tried.renamed = true
	s.b.rawNames.Store(!s.b.rawNames.Load())
	return true
}
