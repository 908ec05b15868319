package projection

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func form(field string) string {
	return `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"f":` + field + `,"b":{"type":"boolean","default":true}},"required":["f"]}}`
}

// A row has the results for an input request: want for clients of since and later, older
// for clients from down to since, and an error for those before down.
type questionRow struct {
	name, method, in string
	want             string
	since            spec.Revision // "": all
	older            string        // "": refused
	down             spec.Revision
	reason           string // part of why older clients can't be asked
}

func TestL2M08Questions(t *testing.T) {
	const titled = `{"type":"string","title":"T","oneOf":[{"const":"r","title":"Red"},{"const":"g"}],"default":"g"}`
	for _, tt := range []questionRow{
		{name: "roots", method: "roots/list", in: `{"_meta":{"a":1}}`, want: `{"_meta":{"a":1}}`},
		{
			name: "a choice with titles", method: "elicitation/create", in: form(titled), want: form(titled), since: spec.Rev20251125,
			older: form(`{"type":"string","title":"T","enum":["r","g"],"enumNames":["Red","g"]}`),
			down:  spec.Rev20250618, reason: "since revision 2025-06-18",
		},
		{
			name: "the default of a string", method: "elicitation/create", in: form(`{"type":"string","default":"x","format":"email"}`),
			want: form(`{"type":"string","default":"x","format":"email"}`), since: spec.Rev20251125,
			older: form(`{"type":"string","format":"email"}`), down: spec.Rev20250618, reason: "since revision 2025-06-18",
		},
		{
			name: "the default of a number", method: "elicitation/create", in: form(`{"type":"number","default":1.0,"minimum":0}`),
			want: form(`{"type":"number","default":1.0,"minimum":0}`), since: spec.Rev20251125,
			older: form(`{"type":"number","minimum":0}`), down: spec.Rev20250618, reason: "since revision 2025-06-18",
		},
		{
			name: "names for a choice, as ever", method: "elicitation/create", in: form(`{"type":"string","enum":["a"],"enumNames":["A"]}`),
			want: form(`{"type":"string","enum":["a"],"enumNames":["A"]}`), since: spec.Rev20250618, reason: "since revision 2025-06-18",
		},
		{
			name: "a choice of several", method: "elicitation/create", in: form(`{"type":"array","items":{"type":"string","enum":["a"]}}`),
			want: form(`{"type":"array","items":{"type":"string","enum":["a"]}}`), since: spec.Rev20251125, reason: `several values of "f"`,
		},
		{
			name: "a message of several blocks", method: "sampling/createMessage",
			in:    `{"maxTokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"x":1},{"role":"assistant","content":{"type":"text","text":"b"}},{"role":"user","content":[]}],"systemPrompt":null}`,
			want:  `{"maxTokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"x":1},{"role":"assistant","content":{"type":"text","text":"b"}},{"role":"user","content":[]}]}`,
			since: spec.Rev20251125,
			older: `{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"a"},"x":1},{"role":"user","content":{"type":"image","data":"","mimeType":"image/png"},"x":1},{"role":"assistant","content":{"type":"text","text":"b"}}]}`,
		},
		{
			name: "sampling with tools", method: "sampling/createMessage",
			in:    `{"messages":[],"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":true}},"outputSchema":{"type":"array"}}]}`,
			want:  `{"messages":[],"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{}}},"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}}]}`,
			since: spec.Rev20251125, reason: "lets the model call tools",
		},
		{
			name: "sampling with a choice of tools", method: "sampling/createMessage", in: `{"messages":[],"toolChoice":{"mode":"none"}}`,
			want: `{"messages":[],"toolChoice":{"mode":"none"}}`, since: spec.Rev20251125, reason: "lets the model call tools",
		},
		{
			name: "tools that are null", method: "sampling/createMessage", in: `{"messages":[],"tools":null,"toolChoice":null,"x":null}`,
			want: `{"messages":[],"x":null}`,
		},
		{
			name: "the result of a tool", method: "sampling/createMessage",
			in:    `{"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":[1]}},{"role":"user","content":[{"type":"tool_result","toolUseId":"2","content":[],"structuredContent":{"a":1}}]}]}`,
			want:  `{"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":{"result":[1]}}},{"role":"user","content":[{"type":"tool_result","toolUseId":"2","content":[],"structuredContent":{"a":1}}]}]}`,
			since: spec.Rev20251125, reason: `content of type "tool_result"`,
		},
		{
			name: "audio", method: "sampling/createMessage", in: `{"messages":[{"role":"user","content":{"type":"\u0061udio","data":"","mimeType":"audio/wav"}}]}`,
			want:  `{"messages":[{"role":"user","content":{"type":"\u0061udio","data":"","mimeType":"audio/wav"}}]}`,
			since: spec.Rev20250326, reason: "audio",
		},
		{name: "text that speaks of audio", method: "sampling/createMessage", in: `{"messages":[{"role":"user","content":{"type":"text","text":"audio"}}]}`,
			want: `{"messages":[{"role":"user","content":{"type":"text","text":"audio"}}]}`},
		{name: "what nobody asks", method: "acme/ask", in: `{}`, since: spec.Rev20260728, reason: "no client knows"},
		{name: "a tool that is none", method: "sampling/createMessage", in: `{"messages":[],"tools":[{"name":"t","inputSchema":7}]}`, since: spec.Rev20260728, reason: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				tt.check(t, rev)
			}
		})
	}
}

func (r *questionRow) check(t *testing.T, rev spec.Revision) {
	t.Helper()
	in := mcp.InputRequest{Method: r.method, Params: []byte(r.in)}
	got, err := InputRequest(rev, nil, in)
	want, refused := r.want, false
	if rev < r.since {
		want, refused = r.older, r.older == "" || rev < r.down
	}
	switch {
	case refused && (err == nil || !strings.Contains(err.Error(), r.reason)):
		t.Errorf("Question(%s, %s) = %s, %v, want an error with %q", rev, r.in, got.Params, err, r.reason)
	case !refused && (err != nil || string(got.Params) != want || got.Method != r.method):
		t.Errorf("Question(%s, %s)\n got %s, %v\nwant %s", rev, r.in, got.Params, err, want)
	}
	if string(in.Params) != r.in {
		t.Errorf("Question(%s, …) wrote to what it was given: %s", rev, in.Params)
	}
}

func TestElicitationID(t *testing.T) {
	const in = `{"mode":"url","message":"m","url":"https://x/"}`
	seen := make(map[string]bool)
	for range 10 {
		q, err := InputRequest(spec.Rev20251125, nil, mcp.InputRequest{Method: "elicitation/create", Params: []byte(in)})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := wire.GetString(q.Params, "elicitationId")
		if len(id) < 26 || seen[id] { // 128 bits in base 32
			t.Errorf("elicitationId = %q, seen before: %v", id, seen[id])
		}
		seen[id] = true
		if rest := wire.AppendEdited(nil, q.Params, wire.Edit{Name: "elicitationId"}); string(rest) != in {
			t.Errorf("Question(%s) = %s beside the elicitationId", in, rest)
		}
	}
	for _, rev := range []spec.Revision{spec.Rev20250618, spec.Rev20250326, spec.Rev20241105} {
		if _, err := InputRequest(rev, nil, mcp.InputRequest{Method: "elicitation/create", Params: []byte(in)}); err == nil {
			t.Errorf("Question(%s, %s) has no error", rev, in)
		}
	}
}

func TestQuestionWithoutParams(t *testing.T) {
	for _, rev := range spec.Revisions(spec.Legacy) {
		q, err := InputRequest(rev, nil, mcp.InputRequest{Method: "roots/list"})
		if err != nil || q.Params != nil {
			t.Errorf("Question(%s, roots/list) = %s, %v, want no params", rev, q.Params, err)
		}
	}
}

// What a legacy server asks in a session is put into the shape of its client's revision only where
// that is earlier than the session's: without a gateway the client would get it as it is.
func TestL2M08QuestionsOfLegacyServers(t *testing.T) {
	several := form(`{"type":"array","items":{"type":"string","enum":["a"]}}`)
	for _, tt := range []struct {
		server, client spec.Revision
		passes         bool
	}{
		{spec.Rev20250618, spec.Rev20250618, true},
		{spec.Rev20250618, spec.Rev20251125, true},
		{spec.Rev20250326, spec.Rev20250618, true},
		{spec.Rev20251125, spec.Rev20251125, true},
		{spec.Rev20251125, spec.Rev20250618, false},
		{"", spec.Rev20250618, false}, // a modern server
	} {
		q, err := InputRequest(tt.client, []byte(`{"elicitation":{}}`), mcp.InputRequest{Method: spec.MethodElicit, Params: []byte(several), Revision: tt.server})
		if (err == nil) != tt.passes || tt.passes && string(q.Params) != several {
			t.Errorf("server of %q, client of %s: %s, %v, want that it passes: %v", tt.server, tt.client, q.Params, err, tt.passes)
		}
	}
}

func TestL2M08Answers(t *testing.T) {
	const asForm, asURL = `{"message":"m","requestedSchema":{}}`, `{"mode":"url","message":"m","url":"https://x/"}`
	for _, tt := range []struct{ name, method, params, in, want string }{
		{"a form", "elicitation/create", asForm, `{"action":"accept","content":{"a":null,"n":1.0}}`, `{"action":"accept","content":{"a":null,"n":1.0}}`},
		{"a form declined", "elicitation/create", asForm, `{"action":"decline","content":null}`, `{"action":"decline"}`},
		{"a form cancelled", "elicitation/create", asForm, `{"action":"cancel","content":{},"_meta":null}`, `{"action":"cancel"}`},
		{"a form accepted without values", "elicitation/create", asForm, `{"action":"accept","content":null}`, `{"action":"accept"}`},
		{"a URL", "elicitation/create", asURL, `{"action":"accept","content":{}}`, `{"action":"accept"}`},
		{"a message", "sampling/createMessage", `{}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"null"},"stopReason":null,"x":null}`,
			`{"role":"assistant","model":"m","content":{"type":"text","text":"null"},"x":null}`},
		{"a message of blocks", "sampling/createMessage", `{}`, `{"role":"assistant","model":"m","content":[{"type":"text","text":"t"}]}`,
			`{"role":"assistant","model":"m","content":[{"type":"text","text":"t"}]}`},
		{"roots", "roots/list", ``, `{"roots":[{"uri":"file:///a","name":"A"}],"_meta":{"a":1}}`, `{"roots":[{"uri":"file:///a","name":"A"}],"_meta":{"a":1}}`},
		{"no roots", "roots/list", ``, `{"roots":null}`, `{"roots":[]}`},
		{"roots missing", "roots/list", ``, `{}`, `{"roots":[]}`},
		{"a root without name", "roots/list", ``, `{"roots":[{"uri":"file:///a","name":null}]}`, `{"roots":[{"uri":"file:///a"}]}`},
		{"no object", "roots/list", ``, `[]`, `[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := mcp.InputRequest{Method: tt.method, Params: []byte(tt.params)}
			for _, rev := range spec.Revisions(spec.Legacy) {
				a := InputResponse(rev, q, mcp.InputResponse{Result: []byte(tt.in)})
				if string(a.Result) != tt.want || a.Err != nil {
					t.Errorf("Answer(%s, %s) = %s, %v, want %s", rev, tt.in, a.Result, a.Err, tt.want)
				}
			}
		})
	}
	failure := wire.Errorf(-1, "user said no")
	if a := InputResponse(spec.Rev20250618, mcp.InputRequest{Method: "elicitation/create"}, mcp.InputResponse{Err: failure}); a.Err != failure || a.Result != nil {
		t.Errorf("a failure became %s, %v", a.Result, a.Err)
	}
}

// A declared capability counts, even if the client's revision lacks it. The form is that
// of its revision, if that has one.
func TestL2M13DeclaredBeyondTheRevision(t *testing.T) {
	const titled = `{"type":"string","title":"T","oneOf":[{"const":"r","title":"Red"}],"default":"r"}`
	const tools = `{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[]},{"type":"text","text":"t"}]}],"tools":[]}`
	for _, tt := range []struct{ name, caps, method, in, want string }{
		{"forms", `{"elicitation":{}}`, "elicitation/create", form(titled), form(`{"type":"string","title":"T","enum":["r"],"enumNames":["Red"]}`)},
		{"URLs", `{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"url","message":"m","url":"https://x/","elicitationId":"1"}`,
			`{"mode":"url","message":"m","url":"https://x/","elicitationId":"1"}`},
		{"URLs to a client of forms", `{"elicitation":{}}`, "elicitation/create", `{"mode":"url","message":"m","url":"https://x/"}`, ""},
		{"tools", `{"sampling":{"tools":{}}}`, "sampling/createMessage", tools, tools},
		{"tools to a client without", `{"sampling":{}}`, "sampling/createMessage", tools, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range []spec.Revision{spec.Rev20250618, spec.Rev20250326, spec.Rev20241105} {
				got, err := InputRequest(rev, []byte(tt.caps), mcp.InputRequest{Method: tt.method, Params: []byte(tt.in)})
				if refused := tt.want == ""; refused != (err != nil) || !refused && string(got.Params) != tt.want {
					t.Errorf("Question(%s, %s, %s)\n got %s, %v\nwant %s", rev, tt.caps, tt.in, got.Params, err, tt.want)
				}
			}
		})
	}
}

// No client makes a task of a question, and no server hears that it could.
func TestT28QuestionsAreNoTasks(t *testing.T) {
	const caps = `{"elicitation":{},"sampling":{},"tasks":{"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}}`
	if got := string(AppendClientCapabilities(nil, spec.Rev20251125, []byte(caps))); got != `{"elicitation":{},"sampling":{}}` {
		t.Errorf("the server is told %s, want nothing of tasks", got)
	}
	for method, params := range map[string]string{
		spec.MethodElicit: `{"message":"m","requestedSchema":{"type":"object","properties":{}}`,
		spec.MethodSample: `{"maxTokens":5,"messages":[]`,
	} {
		for _, rev := range spec.Revisions(spec.Legacy) {
			if method == spec.MethodElicit && rev < spec.Rev20250618 {
				continue // it has no form there
			}
			got, err := InputRequest(rev, []byte(caps), mcp.InputRequest{Method: method, Params: []byte(params + `,"task":{"ttl":5}}`)})
			if want := params + "}"; err != nil || string(got.Params) != want {
				t.Errorf("%s for %s = %s, %v, want %s", method, rev, got.Params, err, want)
			}
		}
	}
}
