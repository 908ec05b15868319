package notebook

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxCompletions is the maximum of values in one result.
//
// Spec: 2025-11-25, server/utilities/completion, Completion Results.
const maxCompletions = 100

const (
	summarize            = "summarize" // the only prompt
	summarizeDescription = "Ask for a summary of a note."
)

var prompts = json.RawMessage(`{"prompts":[{"name":"` + summarize + `","description":"` + summarizeDescription + `",` +
	`"arguments":[{"name":"name","description":"The note's name","required":true}]}]}`)

func (s *session) listPrompts(params []byte) (any, *wire.Error) { return onePage(params, prompts) }

type promptResult struct {
	Description string          `json:"description"`
	Messages    []promptMessage `json:"messages"`
}

type promptMessage struct {
	Role    string      `json:"role"`
	Content textContent `json:"content"`
}

func (s *session) getPrompt(params []byte) (any, *wire.Error) {
	name, ok := wire.GetString(params, "name")
	if !ok {
		return nil, missing("name")
	}
	if name != summarize {
		return nil, wire.Errorf(spec.CodeInvalidParams, "unknown prompt %q", name)
	}
	note, ok := wire.GetString(wire.Get(params, "arguments"), "name")
	if !ok {
		return nil, missing("arguments.name")
	}
	body, ok := s.nb.read(note)
	if !ok {
		return nil, wire.Errorf(spec.CodeInvalidParams, "unknown note %q", note)
	}
	ask := fmt.Sprintf("Summarize the note %q in one sentence:\n\n%s", note, body)
	return promptResult{summarizeDescription, []promptMessage{{"user", text(ask)}}}, nil
}

type completeResult struct {
	Completion completion `json:"completion"`
}

type completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total"`
	HasMore bool     `json:"hasMore"`
}

// complete proposes names of notes, for the argument of the prompt and of the template.
func (s *session) complete(params []byte) (any, *wire.Error) {
	ref, arg := wire.Get(params, "ref"), wire.Get(params, "argument")
	name, _ := wire.GetString(arg, "name")
	prefix, ok := wire.GetString(arg, "value")
	if !ok {
		return nil, missing("argument")
	}
	if !completable(ref) || name != "name" {
		return nil, wire.Errorf(spec.CodeInvalidParams, "nothing to complete: unknown reference or argument %q", name)
	}
	c := completion{Values: []string{}}
	for _, note := range s.nb.names() {
		if !strings.HasPrefix(note, prefix) {
			continue
		}
		if c.Total++; c.Total <= maxCompletions {
			c.Values = append(c.Values, note)
		}
	}
	c.HasMore = c.Total > maxCompletions
	return completeResult{c}, nil
}

func completable(ref []byte) bool {
	kind, _ := wire.GetString(ref, "type")
	switch kind {
	case "ref/prompt":
		name, _ := wire.GetString(ref, "name")
		return name == summarize
	case "ref/resource":
		uri, _ := wire.GetString(ref, "uri")
		return uri == noteTemplate
	}
	return false
}
