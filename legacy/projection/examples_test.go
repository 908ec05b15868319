//go:build schemas

package projection

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// eachRevision runs f with the published schema of every legacy revision.
func eachRevision(t *testing.T, f func(t *testing.T, rev spec.Revision, p *published)) {
	for _, rev := range spec.Revisions(spec.Legacy) {
		t.Run(string(rev), func(t *testing.T) { f(t, rev, readPublished(t, rev)) })
	}
}

// resultExamples are the published definitions whose examples go into results: as
// the result, as that of a response, or where %s stands.
var resultExamples = []struct{ definition, method, in, result string }{
	{"CallToolResult", "tools/call", "%s", "CallToolResult"},
	{"CallToolResultResponse", "tools/call", "", "CallToolResult"},
	{"TextContent", "tools/call", `{"content":[%s]}`, "CallToolResult"},
	{"ImageContent", "tools/call", `{"content":[%s]}`, "CallToolResult"},
	{"AudioContent", "tools/call", `{"content":[%s]}`, "CallToolResult"},
	{"ResourceLink", "tools/call", `{"content":[%s]}`, "CallToolResult"},
	{"EmbeddedResource", "tools/call", `{"content":[%s]}`, "CallToolResult"},
	{"ListToolsResult", "tools/list", "%s", "ListToolsResult"},
	{"ListToolsResultResponse", "tools/list", "", "ListToolsResult"},
	{"Tool", "tools/list", `{"tools":[%s]}`, "ListToolsResult"},
	{"ListPromptsResult", "prompts/list", "%s", "ListPromptsResult"},
	{"ListPromptsResultResponse", "prompts/list", "", "ListPromptsResult"},
	{"GetPromptResult", "prompts/get", "%s", "GetPromptResult"},
	{"GetPromptResultResponse", "prompts/get", "", "GetPromptResult"},
	{"AudioContent", "prompts/get", `{"messages":[{"role":"user","content":%s}]}`, "GetPromptResult"},
	{"ResourceLink", "prompts/get", `{"messages":[{"role":"user","content":%s}]}`, "GetPromptResult"},
	{"EmbeddedResource", "prompts/get", `{"messages":[{"role":"user","content":%s}]}`, "GetPromptResult"},
	{"ListResourcesResult", "resources/list", "%s", "ListResourcesResult"},
	{"ListResourcesResultResponse", "resources/list", "", "ListResourcesResult"},
	{"Resource", "resources/list", `{"resources":[%s]}`, "ListResourcesResult"},
	{"ListResourceTemplatesResult", "resources/templates/list", "%s", "ListResourceTemplatesResult"},
	{"ListResourceTemplatesResultResponse", "resources/templates/list", "", "ListResourceTemplatesResult"},
	{"ReadResourceResult", "resources/read", "%s", "ReadResourceResult"},
	{"ReadResourceResultResponse", "resources/read", "", "ReadResourceResult"},
	{"TextResourceContents", "resources/read", `{"contents":[%s]}`, "ReadResourceResult"},
	{"BlobResourceContents", "resources/read", `{"contents":[%s]}`, "ReadResourceResult"},
	{"CompleteResult", "completion/complete", "%s", "CompleteResult"},
	{"CompleteResultResponse", "completion/complete", "", "CompleteResult"},
}

func TestL2M06L2M07PublishedResults(t *testing.T) {
	eachRevision(t, func(t *testing.T, rev spec.Revision, p *published) {
		for _, tt := range resultExamples {
			for name, text := range examples(t, tt.definition) {
				body := wire.Get(text, "result")
				if tt.in != "" {
					body = fmt.Appendf(nil, tt.in, text)
				}
				out, _, err := AppendResult(nil, rev, tt.method, []byte(`{"name":"x"}`), body, NewTools())
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if err := p.check(tt.result, out); err != nil {
					t.Errorf("%s is no %s: %v", name, tt.result, err)
				}
				if left := modernMembers(tt.method, out); left != nil {
					t.Errorf("%s became %s, in which %q are modern", name, out, left)
				}
			}
		}
	})
}

// Results of real servers that strict clients refuse.
func TestL2M06L2M07RoughResults(t *testing.T) {
	rough := []struct{ method, body, result string }{
		{"tools/call", `{"content":null,"isError":null}`, "CallToolResult"},
		{"tools/call", `{"structuredContent":["a",null]}`, "CallToolResult"},
		{"tools/call", `{"structuredContent":null,"content":[null,"text",{"type":"smell"},{"type":"text","text":"t","annotations":null,"_meta":null}]}`, "CallToolResult"},
		{"tools/list", `{"tools":null,"nextCursor":null,"_meta":null}`, "ListToolsResult"},
		{"tools/list", `{"tools":[{"name":"a","inputSchema":{"properties":{"x":true}},"outputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":true},"title":null},
			{"name":"b","inputSchema":{"type":"array"}},{"name":"c","outputSchema":true},{"name":"d","outputSchema":{"type":"object","properties":{"y":false}}},5]}`, "ListToolsResult"},
		{"prompts/list", `{"prompts":[{"name":"a","arguments":null,"icons":null}]}`, "ListPromptsResult"},
		{"prompts/get", `{"description":null,"messages":[{"role":"user","content":{"type":"smell"}}]}`, "GetPromptResult"},
		{"resources/list", `{"resources":[{"uri":"a:b","name":"n","size":null,"annotations":null}]}`, "ListResourcesResult"},
		{"resources/read", `{"contents":[{"uri":"a:b","text":"t","mimeType":null}]}`, "ReadResourceResult"},
		{"completion/complete", `{"completion":{"values":["a"],"total":null}}`, "CompleteResult"},
	}
	eachRevision(t, func(t *testing.T, rev spec.Revision, p *published) {
		for _, tt := range rough {
			out := project(t, rev, tt.method, `{"name":"x"}`, tt.body, NewTools())
			if err := p.check(tt.result, []byte(out)); err != nil {
				t.Errorf("%s %s: %v", tt.method, tt.body, err)
			}
		}
	})
}

// questionExamples are the published examples of input requests and their parts.
func questionExamples(t *testing.T) map[string]mcp.InputRequest {
	out := make(map[string]mcp.InputRequest)
	for name, text := range examples(t, "InputRequiredResult") {
		for k, v := range wire.Members(wire.Get(text, "inputRequests")) {
			addRequest(out, name+" "+k.String(), v)
		}
	}
	for name, text := range examples(t, "InputRequests") {
		for k, v := range wire.Members(text) {
			addRequest(out, name+" "+k.String(), v)
		}
	}
	for _, definition := range []string{"ElicitRequest", "CreateMessageRequest", "ListRootsRequest"} {
		for name, text := range examples(t, definition) {
			addRequest(out, name, text)
		}
	}
	for _, tt := range []struct{ definition, method, in string }{
		{"ElicitRequestFormParams", spec.MethodElicit, `%s`},
		{"ElicitRequestURLParams", spec.MethodElicit, `%s`},
		{"CreateMessageRequestParams", spec.MethodSample, `%s`},
		{"SamplingMessage", spec.MethodSample, `{"maxTokens":1,"messages":[%s]}`},
		{"AudioContent", spec.MethodSample, `{"maxTokens":1,"messages":[{"role":"user","content":[%s]}]}`},
		{"ToolUseContent", spec.MethodSample, `{"maxTokens":1,"messages":[{"role":"assistant","content":%s}]}`},
		{"ToolResultContent", spec.MethodSample, `{"maxTokens":1,"messages":[{"role":"user","content":[%s]}]}`},
		{"Tool", spec.MethodSample, `{"maxTokens":1,"messages":[],"tools":[%s]}`},
		{"StringSchema", spec.MethodElicit, form("%s")},
		{"NumberSchema", spec.MethodElicit, form("%s")},
		{"BooleanSchema", spec.MethodElicit, form("%s")},
		{"UntitledSingleSelectEnumSchema", spec.MethodElicit, form("%s")},
		{"TitledSingleSelectEnumSchema", spec.MethodElicit, form("%s")},
		{"UntitledMultiSelectEnumSchema", spec.MethodElicit, form("%s")},
		{"TitledMultiSelectEnumSchema", spec.MethodElicit, form("%s")},
	} {
		for name, text := range examples(t, tt.definition) {
			out[name+" in "+tt.method] = mcp.InputRequest{Method: tt.method, Params: fmt.Appendf(nil, tt.in, text)}
		}
	}
	return out
}

func addRequest(to map[string]mcp.InputRequest, name string, text []byte) {
	method, _ := wire.GetString(text, "method")
	to[name] = mcp.InputRequest{Method: method, Params: wire.Get(text, "params")}
}

// Every published input request is converted to a form of the revision, or refused
// because of a feature that the revision lacks.
func TestL2M08PublishedQuestions(t *testing.T) {
	definitions := map[string]string{
		spec.MethodElicit: "ElicitRequest", spec.MethodSample: "CreateMessageRequest", spec.MethodRootsList: "ListRootsRequest",
	}
	questions := questionExamples(t)
	eachRevision(t, func(t *testing.T, rev spec.Revision, p *published) {
		for _, name := range slices.Sorted(maps.Keys(questions)) {
			in := questions[name]
			out, err := InputRequest(rev, nil, in)
			if want := impossible(rev, name, in); (err != nil) != want {
				t.Errorf("%s: error %v, want one = %v", name, err, want)
			}
			if err != nil {
				continue
			}
			text := wire.AppendRequest(nil, wire.NumberID(1), out.Method, out.Params, nil)
			if err := p.check(definitions[out.Method], text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// impossible reports which examples can't be converted for a revision.
func impossible(rev spec.Revision, name string, q mcp.InputRequest) bool {
	switch {
	case q.Method == spec.MethodElicit && rev < spec.Rev20250618,
		rev < spec.Rev20251125 && (strings.Contains(name, "MultiSelect") || strings.Contains(name, "URLParams")),
		rev < spec.Rev20251125 && q.Method == spec.MethodSample && strings.Contains(string(q.Params), `"tool`),
		rev < spec.Rev20250326 && q.Method == spec.MethodSample && strings.HasPrefix(name, "Audio"):
		return true
	}
	return false
}

// Converted responses of clients, from the published examples and in the form of older
// clients, are valid for modern servers.
func TestL2M08PublishedAnswers(t *testing.T) {
	modern := readPublished(t, spec.Rev20260728)
	for _, tt := range []struct {
		method, definition string
		older              []string
	}{
		{spec.MethodElicit, "ElicitResult", []string{`{"action":"decline","content":null}`, `{"action":"cancel","_meta":null}`}},
		{spec.MethodSample, "CreateMessageResult", []string{`{"role":"assistant","model":"m","content":{"type":"text","text":"t"},"stopReason":null}`}},
		{spec.MethodRootsList, "ListRootsResult", []string{`{"roots":null}`, `{"roots":[{"uri":"file:///a","name":null}]}`}},
	} {
		answers := examples(t, tt.definition)
		for _, text := range tt.older {
			answers[text] = []byte(text)
		}
		for name, text := range answers {
			for _, rev := range spec.Revisions(spec.Legacy) {
				a := InputResponse(rev, mcp.InputRequest{Method: tt.method, Params: []byte(`{}`)}, mcp.InputResponse{Result: text})
				if err := modern.check(tt.definition, a.Result); err != nil {
					t.Errorf("%s from %s: %v", name, rev, err)
				}
			}
		}
	}
}

func TestL2M01PublishedCapabilities(t *testing.T) {
	modern := readPublished(t, spec.Rev20260728)
	eachRevision(t, func(t *testing.T, rev spec.Revision, p *published) {
		for name, text := range examples(t, "ServerCapabilities") {
			if err := p.check("ServerCapabilities", AppendServerCapabilities(nil, rev, text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, text := range examples(t, "ClientCapabilities") {
			if err := modern.check("ClientCapabilities", AppendClientCapabilities(nil, rev, text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPublishedNotifications(t *testing.T) {
	eachRevision(t, func(t *testing.T, rev spec.Revision, p *published) {
		for definition, params := range map[string]string{
			"ProgressNotification": "ProgressNotificationParams", "LoggingMessageNotification": "LoggingMessageNotificationParams",
		} {
			method := map[string]string{"ProgressNotification": spec.NotifyProgress, "LoggingMessageNotification": spec.NotifyMessage}[definition]
			for name, text := range examples(t, params) {
				n := Notification(rev, mcp.Notification{Method: method, Params: text})
				if err := p.check(definition, wire.AppendNotification(nil, n.Method, n.Params, nil)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestL2M09PublishedErrors(t *testing.T) {
	eachRevision(t, func(t *testing.T, rev spec.Revision, p *published) {
		definition := "JSONRPCError"
		if p.has[definition] == nil {
			definition = "JSONRPCErrorResponse"
		}
		for _, kind := range []string{"MissingRequiredClientCapabilityError", "UnsupportedProtocolVersionError", "HeaderMismatchError", "InvalidParamsError", "InternalError", "MethodNotFoundError"} {
			for name, text := range examples(t, kind) {
				if inner := wire.Get(text, "error"); inner != nil {
					text = inner
				}
				var e wire.Error
				if err := json.Unmarshal(text, &e); err != nil {
					t.Fatal(err)
				}
				got := Error(&e)
				if spec.Reserved(got.Code) || len(got.Message) < len(e.Message) {
					t.Errorf("%s became %v", name, got)
				}
				if err := p.check(definition, wire.AppendError(nil, wire.NumberID(1), got)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}
