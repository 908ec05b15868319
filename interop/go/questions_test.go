package interop

import (
	"encoding/json"
	"testing"
)

// everythingFields is a value for each field of server-everything's form: a
// client that fills in defaults would otherwise answer more than one that
// doesn't.
const everythingFields = `{
	"name": "Ada", "check": true, "firstLine": "It was a dark and stormy night.", "email": "ada@example.com",
	"homepage": "https://example.com/ada", "birthdate": "1815-12-10", "integer": 7, "number": 2.5,
	"untitledSingleSelectEnum": "Ross", "untitledMultipleSelectEnum": ["Piano", "Drums"],
	"titledSingleSelectEnum": "hero-2", "titledMultipleSelectEnum": ["fish-1", "fish-3"], "legacyTitledEnum": "pet-2"
}`

func answer(method, result string) map[string]json.RawMessage {
	return map[string]json.RawMessage{method: json.RawMessage(result)}
}

func everythingErrands(root clientRoot) []errandCall {
	const elicit, sample = "elicitation/create", "sampling/createMessage"
	return []errandCall{
		{
			Tool:    "trigger-elicitation-request",
			Answers: answer(elicit, `{"action": "accept", "content": `+everythingFields+`}`),
			want: []string{
				"- Name: Ada", "- Agreed to terms: true", "- Email: ada@example.com", "- Birthdate: 1815-12-10",
				"- Favorite Integer: 7", "- Favorite Number: 2.5", `"Piano"`, `"titledSingleSelectEnum": "hero-2"`,
				`"fish-3"`, `"legacyTitledEnum": "pet-2"`,
			},
			asked: `[{"Method": "elicitation/create", "Params": {
				"message": "Please provide inputs for the following fields:",
				"requestedSchema": {"type": "object", "required": ["name"], "properties": {
					"name": {"type": "string", "title": "String"},
					"email": {"format": "email"},
					"integer": {"type": "integer", "minimum": 1, "maximum": 100, "default": 42},
					"number": {"default": 3.14},
					"untitledMultipleSelectEnum": {"type": "array", "maxItems": 3, "items": {"enum": ["Guitar", "Piano", "Violin", "Drums", "Bass"]}, "default": ["Guitar"]},
					"titledSingleSelectEnum": {"oneOf": [{"const": "hero-1", "title": "Superman"}, {"const": "hero-2"}, {"const": "hero-3"}]},
					"legacyTitledEnum": {"enumNames": ["Cats", "Dogs", "Birds", "Fish", "Reptiles"]}
				}}}}]`,
		},
		{
			Tool:    "trigger-elicitation-request",
			Answers: answer(elicit, `{"action": "decline"}`),
			want:    []string{"❌ User declined to provide the requested information.", `"action": "decline"`},
			asked:   `[{"Method": "elicitation/create"}]`,
		},
		{
			Tool:      "trigger-url-elicitation",
			Arguments: map[string]any{"url": "https://example.com/consent", "message": "Please consent", "elicitationId": "e-1"},
			Answers:   answer(elicit, `{"action": "accept"}`),
			want:      []string{"✅ User completed the URL elicitation flow.", "Elicitation ID: e-1", "URL: https://example.com/consent"},
			asked:     `[{"Method": "elicitation/create", "Params": {"mode": "url", "message": "Please consent", "url": "https://example.com/consent"}}]`,
		},
		{
			// M2L-22: -32042 at first, and an ordinary question once it is made anew.
			Tool:      "trigger-url-elicitation",
			Arguments: map[string]any{"url": "https://example.com/after", "message": "Please go on", "elicitationId": "e-2", "errorPath": true},
			Answers:   answer(elicit, `{"action": "accept"}`),
			want:      []string{"✅ User completed the URL elicitation flow.", "Elicitation ID: e-2"},
			asked: `[{"Method": "elicitation/create", "Params": {"mode": "url"}},
				{"Method": "elicitation/create", "Params": {"mode": "url", "message": "Please go on", "url": "https://example.com/after"}}]`,
		},
		{
			Tool:      "trigger-sampling-request",
			Arguments: map[string]any{"prompt": "a rhyme on gateways", "maxTokens": 17},
			Answers:   answer(sample, `{"role": "assistant", "model": "a-model", "stopReason": "endTurn", "content": {"type": "text", "text": "straightaways"}}`),
			want:      []string{"LLM sampling result:", `"model": "a-model"`, `"stopReason": "endTurn"`, `"text": "straightaways"`},
			asked: `[{"Method": "sampling/createMessage", "Params": {
				"messages": [{"role": "user", "content": {"type": "text", "text": "Resource trigger-sampling-request context: a rhyme on gateways"}}],
				"systemPrompt": "You are a helpful test server.", "maxTokens": 17, "temperature": 0.7}}]`,
		},
		{
			Tool:  "get-roots-list",
			want:  []string{"Current MCP Roots (1 total):", "1. " + root.Name, "URI: " + root.URI},
			asked: `[]`,
		},
	}
}

// TestM2L16M2L17Answers has both SDKs answer, by themselves, what
// server-everything asks: what the server asked arrives at the user, and what
// the user said arrives at the server.
func TestM2L16M2L17Answers(t *testing.T) {
	for client, run := range runners {
		b, root := errandBridge(t, client)
		for _, server := range []string{"everything-stdio", "everything-http"} {
			t.Run(client+" on "+server, func(t *testing.T) {
				calls := everythingErrands(root)
				got := run(t, errand{URL: b.endpoint(server), Revision: revision, Root: root, Calls: calls})
				compare(t, calls, got)
			})
		}
	}
}
