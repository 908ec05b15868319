//lint:file-ignore SA1019 What is deprecated in 2026-07-28 is part of it all the same.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	touchArgs struct {
		URIs  []string `json:"uris" jsonschema:"the resources to make a new version of"`
		Times int      `json:"times,omitempty" jsonschema:"how often; 0 means once"`
	}
	kindArgs struct {
		Kind string `json:"kind" jsonschema:"tools, prompts or resources"`
	}
	afterArgs struct {
		After int `json:"after,omitempty" jsonschema:"the sequence number before the first entry"`
	}
	nonceArgs struct {
		Nonce  string `json:"nonce" jsonschema:"what the ledger knows this call by"`
		Rounds int    `json:"rounds,omitempty" jsonschema:"of ask: how many; 0 means one"`
	}
	waitArgs struct {
		Nonce string `json:"nonce" jsonschema:"what the ledger knows this call by"`
		MS    int    `json:"ms" jsonschema:"how long, in milliseconds"`
	}
	sizeArgs struct {
		Size int `json:"size" jsonschema:"how many bytes of text"`
	}
)

// addTools adds the tools for proofs.
func (b *board) addTools() {
	addJSON(b.server, "touch", "makes new versions of resources", func(ctx context.Context, _ *mcp.CallToolRequest, a touchArgs) (entries, error) {
		touched, err := b.touch(ctx, a.URIs, a.Times)
		return entries{touched}, err
	})
	addJSON(b.server, "change_lists", "changes a list", func(_ context.Context, _ *mcp.CallToolRequest, a kindArgs) (noArgs, error) {
		return noArgs{}, b.changeList(a.Kind)
	})
	addJSON(b.server, "subscriptions", "tells the open listen streams", func(context.Context, *mcp.CallToolRequest, noArgs) (subscriptions, error) {
		return b.listens.subscriptions(os.Getpid()), nil
	})
	addJSON(b.server, "ledger", "tells what was sent and asked", func(_ context.Context, _ *mcp.CallToolRequest, a afterArgs) (entries, error) {
		return entries{b.ledger.after(a.After)}, nil
	})
	addJSON(b.server, "mark", "writes down that it ran", func(_ context.Context, _ *mcp.CallToolRequest, a nonceArgs) (entry, error) {
		return b.ledger.add(entry{What: "call", Nonce: a.Nonce}), nil
	})
	mcp.AddTool(b.server, &mcp.Tool{Name: "text", Description: "returns much text"},
		func(_ context.Context, _ *mcp.CallToolRequest, a sizeArgs) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: text("%s", filler(a.Size))}, nil, nil
		})
	mcp.AddTool(b.server, &mcp.Tool{Name: "wait", Description: "reports progress until its time is over or it is cancelled"}, b.wait)
	mcp.AddTool(b.server, &mcp.Tool{Name: "ask", Description: "asks for the nonce it was given"}, b.ask)
	mcp.AddTool(b.server, &mcp.Tool{Name: "busy", Description: "sends the client away twice with a requestState alone"}, busy)
}

// addJSON adds a tool whose one text is a JSON value.
func addJSON[In, Out any](s *mcp.Server, name, description string, run func(context.Context, *mcp.CallToolRequest, In) (Out, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			out, err := run(ctx, r, in)
			if err != nil {
				return nil, nil, err
			}
			b, err := json.Marshal(out)
			return &mcp.CallToolResult{Content: text("%s", b)}, nil, err
		})
}

func filler(n int) string {
	b := make([]byte, max(n, 0))
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}

// wait reports progress each 20 ms, if that is wanted.
func (b *board) wait(ctx context.Context, r *mcp.CallToolRequest, a waitArgs) (*mcp.CallToolResult, any, error) {
	b.ledger.add(entry{What: "call", Nonce: a.Nonce})
	over := time.After(time.Duration(a.MS) * time.Millisecond)
	for done := 1.0; ; done++ {
		select {
		case <-over:
			return &mcp.CallToolResult{Content: text("waited")}, nil, nil
		case <-ctx.Done():
			b.ledger.add(entry{What: "cancelled", Nonce: a.Nonce})
			return nil, nil, ctx.Err()
		case <-time.After(pause):
		}
		if token := r.Params.GetProgressToken(); token != nil {
			p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, nil, err
			}
		}
	}
}

// ask wants its nonce back in each round, and writes down what it gets.
func (b *board) ask(_ context.Context, r *mcp.CallToolRequest, a nonceArgs) (*mcp.CallToolResult, any, error) {
	d := &dialog{state: true}
	for i := range max(a.Rounds, 1) {
		d.rounds = append(d.rounds, []question{form(fmt.Sprint("nonce", i+1), "What is the nonce? "+a.Nonce, "nonce", "string")})
	}
	t, err := d.take(r.Params.InputResponses, r.Params.RequestState)
	if err != nil {
		b.ledger.add(entry{What: "answer", Nonce: a.Nonce, Err: err.Error()})
		return nil, nil, err
	}
	if t.answers == nil {
		b.ledger.add(entry{What: "asked", Nonce: a.Nonce, Round: t.round})
		return &mcp.CallToolResult{InputRequests: t.ask, RequestState: t.state}, nil, nil
	}
	answer := t.answers[fmt.Sprint("nonce", len(d.rounds))]
	b.ledger.add(entry{What: "answer", Nonce: a.Nonce, Answer: answer})
	return &mcp.CallToolResult{Content: text("%s", answer)}, nil, nil
}

// busy has nothing to ask, and no time either before the third request.
func busy(_ context.Context, r *mcp.CallToolRequest, _ noArgs) (*mcp.CallToolResult, any, error) {
	var p progress
	if s := r.Params.RequestState; s != "" {
		if err := unseal(s, &p); err != nil {
			return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the requestState is not one of ours"}
		}
	}
	if p.Round == 2 {
		return &mcp.CallToolResult{Content: text("served at last")}, nil, nil
	}
	p.Round++
	state, err := seal(&p)
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}, RequestState: state}, nil, err
}

// addStatelessTools adds what the scenario server-stateless calls.
func (b *board) addStatelessTools() {
	mcp.AddTool(b.server, &mcp.Tool{Name: "test_missing_capability", Description: "needs the client's model"}, needSampling)
	addDialog(b.server, "test_streaming_elicitation", "asks the user", once(whatName), filled("Hello, {user_name}!"))
	addTool(b.server, "test_logging_tool", "logs three messages", logThrice)
	for name, kind := range map[string]string{"test_trigger_tool_change": "tools", "test_trigger_prompt_change": "prompts"} {
		addTool(b.server, name, "changes a list", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
			return text("changed the %s", kind), b.changeList(kind)
		})
	}
}

func needSampling(_ context.Context, r *mcp.CallToolRequest, _ noArgs) (*mcp.CallToolResult, any, error) {
	if r.ClientCapabilities().Sampling != nil {
		res, err := converse(r, once(whatCapital), filled("{capital_question}"))
		return res, nil, err
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
	})
	if err != nil {
		return nil, nil, err
	}
	return nil, nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client has no model to offer", Data: data}
}
