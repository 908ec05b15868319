package back

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxRounds is how often the client gets input requests for one request.
	maxRounds = 10
	// roundTimeout bounds one round, including the time without a connection.
	roundTimeout = 10 * time.Minute
)

// inputPolls are the pauses before a request is sent again if its server requested that
// without input requests.
var inputPolls = wake.Backoff{Min: 250 * time.Millisecond, Max: 5 * time.Second}

var errNoAnswer = errors.New("the client did not answer in time")

// An inputRequest is one of the input requests in an input_required result.
type inputRequest struct {
	key []byte // as the server wrote it
	mcp.InputRequest
}

// gatherInput gets the input that an input_required result requests. It returns the
// members of the next request: the responses, and the unchanged requestState.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Client Requirements.
func (s *servedRequest) gatherInput(ctx context.Context, result []byte, round int) ([]wire.Edit, error) {
	state := wire.Get(result, "requestState")
	if wire.IsNull(state) {
		state = nil
	}
	more := []wire.Edit{{Name: "requestState", Value: state}}
	requests := wire.Get(result, "inputRequests")
	asked := inputRequestsOf(requests)
	switch {
	case len(asked) > 0:
		responses, err := s.requestInput(ctx, asked)
		return append(more, wire.Edit{Name: "inputResponses", Value: responses}), err
	case state == nil:
		return nil, wire.Errorf(spec.CodeInternal, "server %q answered %s with input_required, but without input requests or requestState", s.b.opts.Name, s.req.Method)
	}
	return more, wake.Wait(ctx, inputPolls.After(round))
}

func inputRequestsOf(requests []byte) []inputRequest {
	var out []inputRequest
	for k, v := range wire.Members(requests) {
		r := inputRequest{key: k}
		r.Method, _ = wire.GetString(v, "method")
		r.Params = wire.Get(v, "params")
		out = append(out, r)
	}
	return out
}

// requestInput passes the input requests of a round to the client, all together, and
// returns inputResponses. It passes none if one of them needs a capability that the client
// did not declare.
func (s *servedRequest) requestInput(ctx context.Context, asked []inputRequest) ([]byte, error) {
	qs := make([]mcp.InputRequest, len(asked))
	for i, r := range asked {
		if err := s.checkInput(r.InputRequest); err != nil {
			return nil, err
		}
		qs[i] = r.InputRequest
	}
	short, cancel := context.WithTimeoutCause(ctx, roundTimeout, errNoAnswer)
	defer cancel()
	s.clock.Pause()
	answers, err := s.caller.RequestInput(short, qs)
	s.clock.Resume()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case short.Err() != nil:
		return nil, wire.Errorf(spec.CodeInternal, "server %q requested input for %s, and %v (%v)", s.b.opts.Name, s.req.Method, errNoAnswer, roundTimeout)
	case err != nil || len(answers) != len(asked):
		return nil, wire.Errorf(spec.CodeInternal, "server %q requested input for %s, and the client can't be asked: %v", s.b.opts.Name, s.req.Method, err)
	}
	return s.responses(asked, answers)
}

// responses returns inputResponses with the client's responses, or an error if one can't
// be used.
func (s *servedRequest) responses(asked []inputRequest, answers []mcp.InputResponse) ([]byte, error) {
	out := []byte{'{'}
	for i, r := range asked {
		text, err := s.response(r.InputRequest, answers[i])
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, r.key...), ':'), text...)
		out = append(out, ',')
	}
	out[len(out)-1] = '}'
	return out, nil
}

// response returns the client's response to an input request for the server. A failed
// elicitation becomes a cancelled one. For other methods, and for a client that takes it as a
// task alone, it returns an error, because there is no such form.
//
// Spec: 2026-07-28, client/elicitation, Response Actions.
func (s *servedRequest) response(q mcp.InputRequest, a mcp.InputResponse) (json.RawMessage, error) {
	switch {
	case a.Err == nil && mcp.WellFormed(q.Method, a.Result):
		return a.Result, nil
	case q.Method == spec.MethodElicit && (a.Err == nil || a.Err.Code != spec.CodeInvalidRequest):
		return json.RawMessage(`{"action":"cancel"}`), nil
	case a.Err != nil:
		return nil, wire.Errorf(spec.CodeInternal, "server %q needs a response to %s for %s, and the client returned an error: %s", s.b.opts.Name, q.Method, s.req.Method, mcp.Shorten(a.Err.Message))
	}
	return nil, wire.Errorf(spec.CodeInternal, "server %q needs a response to %s for %s, and that of the client is invalid", s.b.opts.Name, q.Method, s.req.Method)
}

// checkInput refuses an input request that the client did not declare a capability for.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Server Requirements.
func (s *servedRequest) checkInput(q mcp.InputRequest) error {
	switch q.Method {
	case spec.MethodElicit, spec.MethodSample, spec.MethodRootsList:
	default:
		return wire.Errorf(spec.CodeInternal, "server %q requested input by the unknown method %q for %s", s.b.opts.Name, mcp.Shorten(q.Method), s.req.Method)
	}
	need := mcp.MissingCapability(firstOf(s.req.Capabilities, s.req.Profile.Capabilities), q.Method, q.Params)
	if need == nil {
		return nil
	}
	e := wire.Errorf(spec.CodeMissingCapability, "server %q can't serve %s to this client: it requires %s, and the client did not declare the capability %s",
		s.b.opts.Name, s.req.Method, q.Method, need)
	e.Data = wire.AppendEdited(nil, nil, wire.Edit{Name: "requiredCapabilities", Value: need})
	return &mcp.Refusal{Err: e}
}
