package backtest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Caller is who made a request: it records what it is told and answers what it is asked.
type Caller struct {
	Told chan string   // also gets every note, if not nil
	Hold chan struct{} // takes no note before it has something, if not nil
	// Ask answers what is asked; nil refuses.
	Ask func(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error)

	mu    sync.Mutex
	notes []string
	asked [][]mcp.InputRequest
}

// Notify implements [mcp.Caller].
func (c *Caller) Notify(ctx context.Context, n mcp.Notification) error {
	if c.Hold != nil {
		select {
		case <-c.Hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	text := n.Method + " " + string(n.Params)
	c.mu.Lock()
	c.notes = append(c.notes, text)
	c.mu.Unlock()
	if c.Told != nil {
		c.Told <- text
	}
	return ctx.Err()
}

// RequestInput implements [mcp.Caller].
func (c *Caller) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	c.mu.Lock()
	c.asked = append(c.asked, qs)
	c.mu.Unlock()
	if c.Ask == nil {
		return nil, mcp.ErrCannotAsk
	}
	return c.Ask(ctx, qs)
}

// Asked returns what the caller was asked, round by round.
func (c *Caller) Asked() [][]mcp.InputRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// Heard returns what the caller was told.
func (c *Caller) Heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// A Client is the Caller of one call: it answers what the server asks.
type Client struct {
	Caller
	Answer func(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error)
}

// RequestInput implements [mcp.Caller].
func (c *Client) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	var out []mcp.InputResponse
	for _, q := range qs {
		a, err := c.Answer(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// NeverAnswers is the Answer of a Client that does not answer.
func NeverAnswers(ctx context.Context, _ mcp.InputRequest) (mcp.InputResponse, error) {
	<-ctx.Done()
	return mcp.InputResponse{}, context.Cause(ctx)
}

// Answers is the Answer of a Client that answers what it has for the method.
func Answers(answers map[string]string) func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
	return func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
		return mcp.InputResponse{Result: json.RawMessage(answers[q.Method])}, nil
	}
}
