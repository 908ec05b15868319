package notebook

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

type toolsResult struct {
	Tools []tool `json:"tools"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

var (
	editTool = tool{
		Name:        "edit_note",
		Description: "Replace a note's text, or add a note.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"name":{"type":"string","description":"The note's name, such as todo"},` +
			`"text":{"type":"string","description":"Its new text"}},"required":["name","text"]}`),
	}
	enableTool = tool{
		Name:        "enable_search",
		Description: "Add the search tool.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
	searchTool = tool{
		Name:        "search",
		Description: "Find the notes that contain a text.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"The text to look for"}},"required":["query"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"result":{"type":"array","items":{"type":"string"}}},"required":["result"]}`),
	}
)

func (s *session) listTools(params []byte) (any, *wire.Error) {
	tools := []tool{editTool, enableTool}
	if s.nb.searchEnabled() {
		tools = append(tools, searchTool)
	}
	return onePage(params, toolsResult{tools})
}

type toolResult struct {
	Content           []textContent `json:"content"`
	StructuredContent any           `json:"structuredContent,omitempty"`
	IsError           bool          `json:"isError,omitempty"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func text(s string) textContent { return textContent{"text", s} }

// toolError returns a result for an error that the model should see, unlike a protocol
// error.
//
// Spec: 2025-11-25, server/tools, Error Handling.
func toolError(err error) toolResult {
	return toolResult{Content: []textContent{text(err.Error())}, IsError: true}
}

// callTool calls a tool. An unknown tool is a protocol error, invalid input is not.
func (s *session) callTool(params []byte) (any, *wire.Error) {
	name, ok := wire.GetString(params, "name")
	args := wire.Get(params, "arguments")
	switch {
	case !ok:
		return nil, missing("name")
	case args != nil && !wire.IsObject(args):
		return nil, missing("arguments")
	case name == editTool.Name:
		return s.editNote(args), nil
	case name == enableTool.Name:
		s.nb.enableSearch()
		return toolResult{Content: []textContent{text("search is live")}}, nil
	case name == searchTool.Name && s.nb.searchEnabled():
		return s.search(args, wire.Get(wire.Get(params, "_meta"), spec.MetaProgressToken)), nil
	}
	return nil, wire.Errorf(spec.CodeInvalidParams, "unknown tool %q", name)
}

func (s *session) editNote(args []byte) toolResult {
	name, err := argument(args, "name")
	if err != nil {
		return toolError(err)
	}
	content, err := argument(args, "text")
	if err == nil {
		err = s.nb.edit(name, content)
	}
	if err != nil {
		return toolError(err)
	}
	s.log("info", fmt.Sprintf("saved note %s", name))
	return toolResult{Content: []textContent{text("saved")}}
}

type progress struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress int             `json:"progress"`
	Total    int             `json:"total"`
	Message  string          `json:"message"`
}

type found struct {
	Result []string `json:"result"`
}

// search searches all notes, and sends a progress notification after each if there is a
// token.
func (s *session) search(args, token []byte) toolResult {
	query, err := argument(args, "query")
	if err != nil {
		return toolError(err)
	}
	hits := found{[]string{}}
	names := s.nb.names()
	content := []textContent{}
	for i, name := range names {
		if body, ok := s.nb.read(name); ok && strings.Contains(body, query) {
			hits.Result = append(hits.Result, name)
			content = append(content, text(name))
		}
		if token != nil {
			s.notify(spec.NotifyProgress, progress{token, i + 1, len(names), "looked at " + name})
		}
	}
	return toolResult{Content: content, StructuredContent: hits}
}

func argument(args []byte, name string) (string, error) {
	value, ok := wire.GetString(args, name)
	if !ok {
		return "", fmt.Errorf("argument %s must be a string", name)
	}
	return value, nil
}
