package group

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// withExtension returns a member that declares extensions, and answers all methods.
func withExtension(name, capabilities string, tools ...string) *fake {
	f := newFake(name, tools...)
	f.capabilities = capabilities
	f.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		if spec.Lists(req.Method) || req.Method == spec.MethodResourcesRead {
			return nil, nil
		}
		return f.result(`{"by":"` + name + `"}`), nil
	}
	return f
}

// A method of an extension goes to the only member that declares the extension.
func TestG10MethodsOfExtensions(t *testing.T) {
	const tasks, ui = `"io.modelcontextprotocol/tasks":{}`, `"io.modelcontextprotocol/ui":{}`
	for _, tt := range []struct{ a, b, method, want string }{
		{`{"extensions":{"com.example/events":{}}}`, `{}`, "events/stream", "a"},
		{`{"extensions":{"com.example/events":{}}}`, `{"extensions":{"com.example/other":{}}}`, "events/stream", "a"},
		{`{"extensions":{"com.example/other":{}}}`, `{"experimental":{"events":{}}}`, "events/stream", "b"},
		{`{}`, `{"extensions":{"com.example/other":{}}}`, "events/stream", "b"},
		{`{"extensions":{` + tasks + `}}`, `{"extensions":{` + ui + `,"io.modelcontextprotocol/skills":{}}}`, spec.MethodSkillsList, "b"},
		{`{"extensions":{"com.example/events":{}}}`, `{"extensions":{"com.example/events":{}}}`, "events/stream", ""},
		{`{"extensions":{"com.example/x":{}}}`, `{"extensions":{"com.example/y":{}}}`, "events/stream", ""},
		{`{"extensions":{` + tasks + `}}`, `{"extensions":{` + ui + `}}`, "events/stream", ""},
		{`{}`, `{}`, "events/stream", ""},
	} {
		r := newRig(t, nil, withExtension("a", tt.a), withExtension("b", tt.b))
		got, err := r.call(t.Context(), request(tt.method, `{ "x":1 }`))
		if tt.want == "" {
			wantError(t, tt.a+tt.b, err, spec.CodeMethodNotFound, tt.method)
			continue
		}
		if err != nil || !strings.Contains(got, `"by":"`+tt.want+`"`) || string(r.members[tt.want].last(t).Params) != `{ "x":1 }` {
			t.Errorf("%s of %s and %s = %s, %v, want %s", tt.method, tt.a, tt.b, got, err, tt.want)
		}
	}
	r := newRig(t, nil, withExtension("a", `{}`))
	if got, err := r.call(t.Context(), request("x/y", "")); err != nil || !strings.Contains(got, `"by":"a"`) {
		t.Errorf("the only member of a group: %s, %v", got, err)
	}
}

// If several declare it, the params say which one is meant: by a name, a URI, or the id of a
// task, which it gets as its own. So does Mcp-Name.
func TestG10MethodsOfExtensionsByWhatTheyName(t *testing.T) {
	const both = `{"extensions":{"com.example/x":{}},"resources":{},"tools":{}}`
	a, b := withExtension("a", both, "one"), withExtension("b", both, "one", "zwei")
	b.pages[spec.MethodResourcesList] = [][]string{resourceItems("x:/b")}
	r := newRig(t, nil, a, b)
	if _, err := r.call(t.Context(), reads("x:/b")); err != nil {
		t.Fatal(err)
	}
	task := r.sealing.seal(sealedTask, "a", "té")
	for _, tt := range []struct{ params, header, by, sent, sentHeader string }{
		{`{"name":"b__one"}`, "b__one", "b", `{"name":"one"}`, "one"},
		{`{"name":"a__one"}`, "other", "a", `{"name":"one"}`, "other"},
		{`{"uri":"x:\/b"}`, "x:/b", "b", `{"uri":"x:\/b"}`, "x:/b"},
		{`{"taskId":` + string(wire.Quote(task)) + `}`, task, "a", `{"taskId":"té"}`, "=?base64?dMOp?="},
		{`{"name":"one"}`, "one", "", "", ""},
		{`{"name":"one","uri":"x:/nobody","taskId":"t"}`, "", "", "", ""},
	} {
		req := request("x/y", tt.params)
		req.ParamHeaders = map[string][]string{spec.HeaderName: {tt.header}, "Mcp-Param-X": {"1"}}
		got, err := r.call(t.Context(), req)
		if tt.by == "" {
			wantError(t, tt.params, err, spec.CodeMethodNotFound, "x/y")
			continue
		}
		if err != nil || !strings.Contains(got, `"by":"`+tt.by+`"`) {
			t.Errorf("%s = %s, %v, want %s", tt.params, got, err, tt.by)
			continue
		}
		sent := r.members[tt.by].last(t)
		if string(sent.Params) != tt.sent || sent.ParamHeaders[spec.HeaderName][0] != tt.sentHeader || sent.ParamHeaders["Mcp-Param-X"] == nil || req.ParamHeaders[spec.HeaderName][0] != tt.header {
			t.Errorf("%s: the member got %s with %v", tt.params, sent.Params, sent.ParamHeaders)
		}
	}
}
