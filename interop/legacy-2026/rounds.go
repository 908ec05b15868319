package main

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addRoundTools adds the tools of the input-required-result scenarios.
func addRoundTools(s *mcp.Server) {
	const prefix = "test_input_required_result_"
	for name, run := range map[string]simpleTool{
		"elicitation":     greet,
		"sampling":        capital,
		"list_roots":      roots,
		"request_state":   confirm,
		"tampered_state":  confirm,
		"multiple_inputs": everythingAtOnce,
		"multi_round":     stepByStep,
		"capabilities":    whatIsDeclared,
	} {
		addTool(s, prefix+name, "asks the client, and waits", run)
	}
}

func greet(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	name, err := elicit(ctx, r.Session, "What is your name?", "name", "string")
	return text("Hello, %v!", name), err
}

func capital(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	answer, err := sample(ctx, r.Session, "What is the capital of France?", 100)
	return text("%s", answer), err
}

func roots(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	uris, err := listRoots(ctx, r.Session)
	return text("roots: %s", uris), err
}

// confirm needs no state of its own: it stands still while the user thinks.
func confirm(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	ok, err := elicit(ctx, r.Session, "Please confirm", "ok", "boolean")
	return text("state-ok: %v", ok), err
}

// everythingAtOnce asks three questions before any is answered.
func everythingAtOnce(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	var (
		wg             sync.WaitGroup
		name           any
		greeting, uris string
		errs           [3]error
	)
	wg.Go(func() { name, errs[0] = elicit(ctx, r.Session, "What is your name?", "name", "string") })
	wg.Go(func() { greeting, errs[1] = sample(ctx, r.Session, "Generate a greeting", 50) })
	wg.Go(func() { uris, errs[2] = listRoots(ctx, r.Session) })
	wg.Wait()
	return text("%s %v has %s", greeting, name, uris), errors.Join(errs[:]...)
}

func stepByStep(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	name, err := elicit(ctx, r.Session, "Step 1: What is your name?", "name", "string")
	if err != nil {
		return nil, err
	}
	hue, err := elicit(ctx, r.Session, "Step 2: What is your favorite color?", "color", "string")
	return text("%v likes %v", name, hue), err
}

// whatIsDeclared asks for what the client said it can answer when it
// introduced itself, and for nothing else.
func whatIsDeclared(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	caps := r.Session.InitializeParams().Capabilities
	var content []mcp.Content
	for _, q := range []struct {
		declared bool
		ask      simpleTool
	}{
		{caps.Elicitation != nil, greet},
		{caps.Sampling != nil, capital},
		{caps.RootsV2 != nil, roots},
	} {
		if !q.declared {
			continue
		}
		answer, err := q.ask(ctx, r)
		if err != nil {
			return nil, err
		}
		content = append(content, answer...)
	}
	return content, nil
}
