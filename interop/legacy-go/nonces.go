package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	nonceArgs struct {
		Nonce string `json:"nonce" jsonschema:"tells this call from all others"`
		Delay int    `json:"delay,omitempty" jsonschema:"milliseconds of work"`
		Times int    `json:"times,omitempty" jsonschema:"how often to ask; once if absent"`
	}
	waitArgs struct {
		Nonce string `json:"nonce" jsonschema:"tells this call from all others"`
		MS    int    `json:"ms" jsonschema:"how long, in milliseconds"`
	}
	// nonceResult is what mark and ask return.
	nonceResult struct {
		Nonce   string   `json:"nonce"`   // the call's
		Answers []string `json:"answers"` // those that the client gave
	}
)

func (b *board) addMark() {
	mcp.AddTool(b.server, &mcp.Tool{Name: "mark", Description: "writes down that it ran"},
		func(ctx context.Context, req *mcp.CallToolRequest, a nonceArgs) (*mcp.CallToolResult, nonceResult, error) {
			b.ledger.add(entry{What: "call", Nonce: a.Nonce, Session: b.label(req.Session)})
			return nil, nonceResult{a.Nonce, []string{}}, a.work(ctx)
		})
}

// addWait adds a tool that reports progress each 20 ms, if that is wanted.
func (b *board) addWait() {
	mcp.AddTool(b.server, &mcp.Tool{Name: "wait", Description: "reports progress until its time is over or it is cancelled"},
		func(ctx context.Context, req *mcp.CallToolRequest, a waitArgs) (*mcp.CallToolResult, any, error) {
			b.ledger.add(entry{What: "call", Nonce: a.Nonce, Session: b.label(req.Session)})
			step := &nonceArgs{Delay: 20}
			token := req.Params.GetProgressToken()
			for done := 1; done*step.Delay <= a.MS; done++ {
				if step.work(ctx) != nil {
					b.ledger.add(entry{What: "cancelled", Nonce: a.Nonce, Session: b.label(req.Session)})
					return nil, nil, context.Cause(ctx)
				}
				if token == nil {
					continue
				}
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(done)}
				if err := req.Session.NotifyProgress(ctx, p); err != nil {
					return nil, nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "waited"}}}, nil, nil
		})
}

func (b *board) addAsk() {
	mcp.AddTool(b.server, &mcp.Tool{Name: "ask", Description: "asks the client to repeat a nonce"},
		func(ctx context.Context, req *mcp.CallToolRequest, a nonceArgs) (*mcp.CallToolResult, nonceResult, error) {
			b.ledger.add(entry{What: "call", Nonce: a.Nonce, Session: b.label(req.Session)})
			res := nonceResult{a.Nonce, []string{}}
			for range max(a.Times, 1) {
				if err := a.work(ctx); err != nil {
					return nil, res, err
				}
				answer, err := elicitNonce(ctx, req.Session, a.Nonce)
				if answer != "" {
					b.ledger.add(entry{What: "answer", Nonce: a.Nonce, Answer: answer, Session: b.label(req.Session)})
					res.Answers = append(res.Answers, answer)
				}
				if err != nil {
					return nil, res, err
				}
			}
			return nil, res, a.work(ctx)
		})
}

func (a *nonceArgs) work(ctx context.Context) error {
	t := time.NewTimer(time.Duration(a.Delay) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// elicitNonce asks the client for a nonce and returns the answer: the nonce, or
// what the client did instead of giving one.
func elicitNonce(ctx context.Context, ss *mcp.ServerSession, nonce string) (string, error) {
	res, err := ss.Elicit(ctx, &mcp.ElicitParams{Message: nonce, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{"nonce": map[string]any{"type": "string"}},
		"required":   []string{"nonce"},
	}})
	if err != nil {
		return "", fmt.Errorf("asking for the nonce: %w", err)
	}
	if res.Action != "accept" {
		return res.Action, fmt.Errorf("asking for the nonce: the answer is %s", res.Action)
	}
	answer, ok := res.Content["nonce"].(string)
	if !ok {
		return "", errors.New("asking for the nonce: the answer has none")
	}
	return answer, nil
}
