package front

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// An inquiry is a question put to the client.
type inquiry struct {
	id     int64
	answer chan mcp.InputResponse // capacity 1
}

var errUnanswered = errors.New("the client did not answer in time")

// RequestInput implements [mcp.Caller]: one request for each question, all at once,
// on the way on which the call's answer will go. None is asked if one of them has no
// form that the client's revision knows. Those without an answer when Ask returns
// are withdrawn.
func (c *incoming) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	asked := make([]mcp.InputRequest, len(qs))
	for i, q := range qs {
		var err error
		if asked[i], err = projection.Question(c.d.revision, c.d.capabilities, q); err != nil {
			return nil, fmt.Errorf("%s can't be put to a client of revision %s: %w", q.Method, c.d.revision, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.d.f.opts.AskTimeout, errUnanswered)
	defer cancel()
	open, err := c.pose(ctx, asked)
	defer func() { c.withdraw(ctx, open) }()
	if err != nil {
		return nil, err
	}
	answers := make([]mcp.InputResponse, len(qs))
	for i, q := range open {
		select {
		case a := <-q.answer:
			answers[i] = projection.Answer(c.d.revision, qs[i], a)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return answers, nil
}

// pose sends the questions.
func (c *incoming) pose(ctx context.Context, qs []mcp.InputRequest) ([]*inquiry, error) {
	open := make([]*inquiry, len(qs))
	for i := range qs {
		open[i] = c.d.openQuestion()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, q := range qs {
		if err := c.out.message(ctx, wire.AppendRequest(nil, wire.NumberID(open[i].id), q.Method, q.Params, nil)); err != nil {
			return open, err
		}
	}
	return open, nil
}

// openQuestion makes room for an answer. The ids are the session's own: the client's
// requests may have the same.
func (d *downstream) openQuestion() *inquiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	q := &inquiry{id: d.asked, answer: make(chan mcp.InputResponse, 1)}
	d.questions[q.id] = q
	return q
}

// withdraw takes back the questions that have no answer, and says so.
func (c *incoming) withdraw(ctx context.Context, open []*inquiry) {
	ctx = context.WithoutCancel(ctx)
	for _, q := range open {
		c.d.mu.Lock()
		waits := c.d.questions[q.id] == q
		delete(c.d.questions, q.id)
		c.d.mu.Unlock()
		if waits {
			c.mu.Lock()
			params := fmt.Appendf(nil, `{"requestId":%d,"reason":"the request that it belongs to has ended"}`, q.id)
			_ = c.out.message(ctx, wire.AppendNotification(nil, spec.NotifyCancelled, params, nil)) // nobody is left to tell
			c.mu.Unlock()
		}
	}
}

// answered takes a response of the client.
func (d *downstream) answered(m *wire.Message) {
	n, ok := m.ID.Int()
	d.mu.Lock()
	q := d.questions[n]
	if ok && q != nil {
		delete(d.questions, n)
	}
	d.mu.Unlock()
	if !ok || q == nil {
		d.f.opts.Metrics.Dropped("late answer")
		return
	}
	q.answer <- mcp.InputResponse{Result: m.Result, Err: m.Error} // once: it has left the map
}
