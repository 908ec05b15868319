package front

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// A pendingInput is an input request that waits for the client's response.
type pendingInput struct {
	id     int64
	answer chan mcp.InputResponse // capacity 1
	trace  *trace.Request         // of the request that it belongs to; nil while nobody observes

	// What is told of it: see [Front.TellClients].
	method, text, during, name string
	since                      time.Time
}

var errUnanswered = errors.New("the client did not answer in time")

// RequestInput implements [mcp.Caller]. It sends all input requests at once, on the stream
// of the call. If one of them has no form in the client's revision, it sends none. When it
// returns, it cancels those without a response.
func (r *request) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	asked := make([]mcp.InputRequest, len(qs))
	for i, q := range qs {
		var err error
		if asked[i], err = projection.InputRequest(r.session.revision, r.session.capabilities, q); err != nil {
			return nil, fmt.Errorf("%s can't be sent to a client of revision %s: %w", q.Method, r.session.revision, err)
		}
		asked[i].Params = askedBy(q.Server, asked[i].Params)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.session.front.opts.AskTimeout, errUnanswered)
	defer cancel()
	open, err := r.sendInputs(ctx, asked)
	defer func() { r.withdraw(ctx, open) }()
	if err != nil {
		return nil, err
	}
	mcp.NoteInputs(r.trace, trace.InputRequired, qs)
	answers := make([]mcp.InputResponse, len(qs))
	for i, q := range open {
		select {
		case a := <-q.answer:
			answers[i] = projection.InputResponse(r.session.revision, qs[i], a)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	mcp.NoteInputs(r.trace, trace.InputAnswered, qs)
	return answers, nil
}

// askedBy returns the params of an input request that name the server of a group that asks, if
// there is one.
func askedBy(server string, params []byte) []byte {
	if server != "" {
		params = wire.EditedIn(params, "_meta", wire.Edit{Name: spec.MetaServer, Value: wire.Quote(server)})
	}
	return params
}

// sendInputs sends the input requests.
func (r *request) sendInputs(ctx context.Context, qs []mcp.InputRequest) ([]*pendingInput, error) {
	open := make([]*pendingInput, len(qs))
	for i, q := range qs {
		open[i] = r.session.inputs.add(&pendingInput{trace: r.trace, method: q.Method, text: mcp.QuestionText(q.Params), during: r.m.Method, name: mcp.Subject(r.m.Method, r.m.Params)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, q := range qs {
		if err := r.send(ctx, wire.AppendRequest(nil, wire.NumberID(open[i].id), q.Method, q.Params, nil)); err != nil {
			return open, err
		}
	}
	return open, nil
}

// withdraw cancels the input requests without a response.
func (r *request) withdraw(ctx context.Context, open []*pendingInput) {
	ctx = context.WithoutCancel(ctx)
	for _, q := range open {
		if r.session.inputs.take(q.id) != nil {
			r.mu.Lock()
			params := fmt.Appendf(nil, `{"requestId":%d,"reason":"the request that it belongs to has ended"}`, q.id)
			_ = r.w.send(ctx, wire.AppendNotification(nil, spec.NotifyCancelled, params, nil)) // an error means that the client has left
			r.mu.Unlock()
		}
	}
}

// receiveResponse handles a response of the client.
func (s *session) receiveResponse(m *wire.Message) {
	n, ok := m.ID.Int()
	var q *pendingInput
	if ok {
		q = s.inputs.take(n)
	}
	if q == nil {
		s.front.drop("late answer")
		return
	}
	q.trace.Received(m.Text)
	q.answer <- mcp.InputResponse{Result: m.Result, Err: m.Error} // does not block: take returns it only once
}

// inputs are the input requests of a session that wait for responses. Their ids are
// independent of those of the client's requests.
type inputs struct {
	// mu guards the fields below.
	mu      sync.Mutex
	last    int64
	pending map[int64]*pendingInput // by id
}

// add adds q, and sets what is not set yet.
func (in *inputs) add(q *pendingInput) *pendingInput {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pending == nil {
		in.pending = make(map[int64]*pendingInput)
	}
	in.last++
	q.id, q.answer, q.since = in.last, make(chan mcp.InputResponse, 1), time.Now()
	in.pending[q.id] = q
	return q
}

// take removes and returns the input request with an id, or nil if there is none.
func (in *inputs) take(id int64) *pendingInput {
	in.mu.Lock()
	defer in.mu.Unlock()
	q := in.pending[id]
	delete(in.pending, id)
	return q
}
