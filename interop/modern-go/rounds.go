//lint:file-ignore SA1019 What is deprecated in 2026-07-28 is part of it all the same.

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addDialog adds a tool that asks as d says, and returns one text of the
// answers.
func addDialog(s *mcp.Server, name, description string, d *dialog, say func(map[string]string) string) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
		func(_ context.Context, r *mcp.CallToolRequest, _ noArgs) (*mcp.CallToolResult, any, error) {
			res, err := converse(r, d, say)
			return res, nil, err
		})
}

func converse(r *mcp.CallToolRequest, d *dialog, say func(map[string]string) string) (*mcp.CallToolResult, error) {
	t, err := d.take(r.Params.InputResponses, r.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if t.answers == nil {
		return &mcp.CallToolResult{InputRequests: t.ask, RequestState: t.state}, nil
	}
	return &mcp.CallToolResult{Content: text("%s", say(t.answers))}, nil
}

func once(questions ...question) *dialog { return &dialog{rounds: [][]question{questions}} }

var (
	whatName    = form("user_name", "What is your name?", "name", "string")
	whatCapital = sample("capital_question", "What is the capital of France?", 100)
	whatRoots   = roots("client_roots")
)

// addRoundTools adds the tools of the input-required-result scenarios.
func addRoundTools(s *mcp.Server) {
	const prefix = "test_input_required_result_"
	confirm := &dialog{rounds: [][]question{{form("confirm", "Please confirm", "ok", "boolean")}}, state: true}
	for _, t := range []struct {
		name   string
		dialog *dialog
		say    string // with the answers' keys in braces
	}{
		{"elicitation", once(whatName), "Hello, {user_name}!"},
		{"sampling", once(whatCapital), "{capital_question}"},
		{"list_roots", once(whatRoots), "roots: {client_roots}"},
		{"request_state", confirm, "state-ok: {confirm}"},
		{"tampered_state", confirm, "state-ok: {confirm}"},
		{"multiple_inputs", &dialog{rounds: [][]question{{whatName, sample("greeting", "Generate a greeting", 50), whatRoots}}, state: true},
			"{greeting} {user_name} has {client_roots}"},
		{"multi_round", &dialog{rounds: [][]question{
			{form("step1", "Step 1: What is your name?", "name", "string")},
			{form("step2", "Step 2: What is your favorite color?", "color", "string")},
		}, state: true}, "{step1} likes {step2}"},
	} {
		addDialog(s, prefix+t.name, "asks the client", t.dialog, filled(t.say))
	}
	mcp.AddTool(s, &mcp.Tool{Name: prefix + "capabilities", Description: "asks for what the client declared"}, askWhatIsDeclared)
	addDialog(s, "visit", "sends the user to a page", once(page("consent", "Please consent", "https://example.com/consent")), filled("consent: {consent}"))
	addDialog(s, "endless", "asks eleven times", rounds(11), func(a map[string]string) string { return fmt.Sprintf("%d answers", len(a)) })
}

// filled makes a text of answers by a template.
func filled(template string) func(map[string]string) string {
	return func(answers map[string]string) string {
		said := template
		for key, answer := range answers {
			said = strings.ReplaceAll(said, "{"+key+"}", strings.TrimSpace(answer))
		}
		return said
	}
}

// rounds is a dialog of n rounds with a question each.
func rounds(n int) *dialog {
	d := &dialog{state: true}
	for i := range n {
		d.rounds = append(d.rounds, []question{form(fmt.Sprint("q", i+1), fmt.Sprintf("Question %d?", i+1), "answer", "string")})
	}
	return d
}

// askWhatIsDeclared asks for what the request says that the client can answer,
// and for nothing else.
func askWhatIsDeclared(_ context.Context, r *mcp.CallToolRequest, _ noArgs) (*mcp.CallToolResult, any, error) {
	var ask []question
	caps := r.ClientCapabilities()
	if caps.Elicitation != nil {
		ask = append(ask, whatName)
	}
	if caps.Sampling != nil {
		ask = append(ask, whatCapital)
	}
	if caps.RootsV2 != nil {
		ask = append(ask, whatRoots)
	}
	if len(ask) == 0 {
		return &mcp.CallToolResult{Content: text("there is nobody to ask")}, nil, nil
	}
	res, err := converse(r, once(ask...), func(answers map[string]string) string { return fmt.Sprint(answers) })
	return res, nil, err
}

type (
	promptArgs struct {
		Prompt string `json:"prompt" jsonschema:"what the model shall complete"`
	}
	messageArgs struct {
		Message string `json:"message" jsonschema:"what the user shall be shown"`
	}
)

// addFormTools adds the tools of the 2025-11-25 scenarios that ask the client.
func addFormTools(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "test_sampling", Description: "asks the client's model"},
		func(_ context.Context, r *mcp.CallToolRequest, a promptArgs) (*mcp.CallToolResult, any, error) {
			res, err := converse(r, once(sample("said", a.Prompt, 100)), filled("the model says: {said}"))
			return res, nil, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "test_elicitation", Description: "asks the user"},
		func(_ context.Context, r *mcp.CallToolRequest, a messageArgs) (*mcp.CallToolResult, any, error) {
			res, err := converse(r, once(everything(a.Message, map[string]any{
				"username": map[string]any{"type": "string", "description": "who you are"},
				"email":    map[string]any{"type": "string", "description": "where to reach you"},
			})), filled("content={content}"))
			return res, nil, err
		})
	addDialog(s, "test_elicitation_sep1034_defaults", "asks with defaults", once(everything("fields with defaults", fieldsWithDefaults)), filled("content={content}"))
	addDialog(s, "test_elicitation_sep1330_enums", "asks with enums", once(everything("fields with choices", fieldsWithChoices)), filled("content={content}"))
}

// everything asks for fields, none of them required.
func everything(message string, properties map[string]any) question {
	return fields("content", message, properties, nil, func(content map[string]any) (string, bool) { return fmt.Sprint(content), true })
}

var fieldsWithDefaults = map[string]any{
	"name":     map[string]any{"type": "string", "default": "John Doe"},
	"age":      map[string]any{"type": "integer", "default": 30},
	"score":    map[string]any{"type": "number", "default": 95.5},
	"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
	"verified": map[string]any{"type": "boolean", "default": true},
}

var fieldsWithChoices = map[string]any{
	"untitledSingle": map[string]any{"type": "string", "enum": []string{"option1", "option2", "option3"}},
	"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
	"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"One", "Two", "Three"}},
	"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"option1", "option2", "option3"}}},
	"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
}

var titled = []map[string]any{
	{"const": "value1", "title": "First"},
	{"const": "value2", "title": "Second"},
	{"const": "value3", "title": "Third"},
}
