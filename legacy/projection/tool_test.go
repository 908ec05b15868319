package projection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestL2M07OutputSchema(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"an object", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"an array", `{"type":"array","items":{"type":"string"}}`,
			`{"type":"object","properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"]}`},
		{"no type", `{"properties":{}}`, `{"type":"object","properties":{"result":{"properties":{}}},"required":["result"]}`},
		{"an object or null", `{"type":["object","null"]}`, `{"type":"object","properties":{"result":{"type":["object","null"]}},"required":["result"]}`},
		{"true", `true`, `{"type":"object","properties":{"result":{}},"required":["result"]}`},
		{"false", `false`, `{"type":"object","properties":{"result":{"not":{}}},"required":["result"]}`},
		{"references from the root", `{"$ref":"#/$defs/T","$defs":{"T":{"anyOf":[{"$ref":"#"},{"$ref":"#\/$defs\/T"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"result":{"$ref":"#/properties/result/$defs/T","$defs":{"T":{"anyOf":[{"$ref":"#/properties/result"},{"$ref":"#/properties/result\/$defs\/T"},{"type":"null"}]}}}},"required":["result"]}`},
		{"references in unknown keywords", `{"components":{"x":[{"$ref":"#/components"}]}}`,
			`{"type":"object","properties":{"result":{"components":{"x":[{"$ref":"#/properties/result/components"}]}}},"required":["result"]}`},
		{"references elsewhere", `{"anyOf":[{"$ref":"#here"},{"$ref":"https://x/y#/z"},{"$ref":"other"}]}`,
			`{"type":"object","properties":{"result":{"anyOf":[{"$ref":"#here"},{"$ref":"https://x/y#/z"},{"$ref":"other"}]}},"required":["result"]}`},
		{"what only looks like a reference", `{"enum":[{"$ref":"#/a"}],"properties":{"$ref":{"const":{"$ref":"#/a"}}}}`,
			`{"type":"object","properties":{"result":{"enum":[{"$ref":"#/a"}],"properties":{"$ref":{"const":{"$ref":"#/a"}}}}},"required":["result"]}`},
		{"references from an identifier", `{"anyOf":[{"$id":"https://x/y","$ref":"#/z"},{"$ref":"#/anyOf/0"}]}`,
			`{"type":"object","properties":{"result":{"anyOf":[{"$id":"https://x/y","$ref":"#/z"},{"$ref":"#/properties/result/anyOf/0"}]}},"required":["result"]}`},
		{"the dialect", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array"}`,
			`{"type":"object","properties":{"result":{"type":"array"}},"required":["result"],"$schema":"http://json-schema.org/draft-07/schema#"}`},
		{"truth values inside", `{"type":"array","items":true,"contains":false}`,
			`{"type":"object","properties":{"result":{"type":"array","items":{},"contains":{"not":{}}}},"required":["result"]}`},
		{"null", `null`, ``},
		{"no schema at all", `"object"`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
			if tt.want != "" {
				want = strings.Replace(want, "}}]", `},"outputSchema":`+tt.want+"}]", 1)
			}
			in := `{"tools":[{"name":"x","inputSchema":{"type":"object"},"outputSchema":` + tt.in + `}]}`
			for _, rev := range spec.Revisions(spec.Legacy) {
				if got := project(t, rev, "tools/list", `{}`, in, nil); got != want {
					t.Errorf("AppendResult(%s)\n got %s\nwant %s", rev, got, want)
				}
			}
		})
	}
}

func TestL2M07InputSchema(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"as it should be", `{"type":"object" ,"properties":{ }}`, `{"type":"object" ,"properties":{ }}`},
		{"null", `null`, `{"type":"object"}`},
		{"without type", `{"properties":{}}`, `{"properties":{},"type":"object"}`},
		{"an object or null", `{"type":["null","object"]}`, `{"type":"object"}`},
		{"truth values for schemas", `{"type":"object","properties":{"a":true,"b":false,"properties":{"anyOf":[true,{"items":false}]}}}`,
			`{"type":"object","properties":{"a":{},"b":{"not":{}},"properties":{"anyOf":[{},{"items":{"not":{}}}]}}}`},
		{"truth values in patterns and definitions", `{"type":"object","patternProperties":{"^x":true},"$defs":{"d":true},"definitions":{"e":false}}`,
			`{"type":"object","patternProperties":{"^x":{}},"$defs":{"d":{}},"definitions":{"e":{"not":{}}}}`},
		{"truth values that are none", `{"type":"object","additionalProperties":false,"properties":{"a":{"const":true,"default":false,"enum":[true],"uniqueItems":true,"x-mcp-header":false}}}`,
			`{"type":"object","additionalProperties":false,"properties":{"a":{"const":true,"default":false,"enum":[true],"uniqueItems":true,"x-mcp-header":false}}}`},
		{"references stay", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":true}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := `{"tools":[{"name":"x","inputSchema":` + tt.in + `}]}`
			want := `{"tools":[{"name":"x","inputSchema":` + tt.want + `}]}`
			if got := project(t, spec.Rev20251125, "tools/list", `{}`, in, nil); got != want {
				t.Errorf("AppendResult(%s)\n got %s\nwant %s", in, got, want)
			}
		})
	}
}

func TestL2M07ToolLeftOut(t *testing.T) {
	tools := NewTools()
	var out []string
	tools.LeftOut = func(tool, reason string) { out = append(out, tool+": "+reason) }
	in := `{"tools":[{"name":"array","inputSchema":{"type":"array"}},{"name":"true","inputSchema":true,"outputSchema":true},7,{"inputSchema":{"type":"object"}},` +
		`{"name":"none","title":null,"execution":{"taskSupport":"required"},"x-vendor":null}]}`
	want := `{"tools":[{"name":"none","x-vendor":null,"inputSchema":{"type":"object"}}]}`
	if got := project(t, spec.Rev20250618, "tools/list", `{}`, in, tools); got != want {
		t.Errorf("AppendResult(%s) = %s, want %s", in, got, want)
	}
	wantOut := []string{
		"array: the root of its inputSchema is not of type object", "true: its inputSchema is not an object", ": it is not an object", ": it has no name",
	}
	if !slices.Equal(out, wantOut) {
		t.Errorf("left out %q, want %q", out, wantOut)
	}
	if tools.wraps([]byte(`{"name":"true"}`)) {
		t.Error("a tool that was left out is remembered")
	}
}

// The results of a tool are wrapped exactly if its schema was.
func TestL2M07Results(t *testing.T) {
	tools := NewTools()
	call := func(name, structured string) string {
		in := `{"content":[{"type":"text","text":"t"}],"structuredContent":` + structured + `}`
		out := project(t, spec.Rev20250618, "tools/call", fmt.Sprintf(`{"name":%q}`, name), in, tools)
		out, ok := strings.CutPrefix(out, `{"content":[{"type":"text","text":"t"}],"structuredContent":`)
		if !ok {
			t.Fatalf("result %s has no structuredContent", out)
		}
		return strings.TrimSuffix(out, "}")
	}
	check := func(when, name, structured, want string) {
		t.Helper()
		if got := call(name, structured); got != want {
			t.Errorf("%s: %s of tool %s became %s, want %s", when, structured, name, got, want)
		}
	}
	check("not listed", "any", `{"a":1}`, `{"a":1}`)
	check("not listed", "any", `[1]`, `{"result":[1]}`)
	check("not listed", "any", `null`, `{"result":null}`)
	list := func(output string) {
		project(t, spec.Rev20251125, "tools/list", `{}`,
			`{"tools":[{"name":"any","inputSchema":{"type":"object"},"outputSchema":`+output+`},{"name":"plain","inputSchema":{"type":"object"}}]}`, tools)
	}
	list(`{"anyOf":[{"type":"object"},{"type":"array"}]}`)
	check("listed", "any", `{"a":1}`, `{"result":{"a":1}}`)
	check("listed", "any", `[1]`, `{"result":[1]}`)
	check("listed without schema", "plain", `{"a":1}`, `{"a":1}`)
	check("listed without schema", "plain", `7`, `{"result":7}`)
	list(`{"type":"object"}`)
	check("changed", "any", `{"a":1}`, `{"a":1}`)

	// With only structured content, the text is the JSON that the server sent.
	want := `{"structuredContent":{"result":[1]},"content":[{"type":"text","text":"[1]"}]}`
	if got := project(t, spec.Rev20241105, "tools/call", `{"name":"any"}`, `{"structuredContent":[1]}`, tools); got != want {
		t.Errorf("structured content alone became %s, want %s", got, want)
	}
}

func TestToolsAreBounded(t *testing.T) {
	tools := NewTools()
	for i := range maxTools + 10 {
		tools.listed(fmt.Sprint(i), true)
	}
	if n := tools.wrapped.Len(); n != maxTools {
		t.Errorf("%d tools are remembered, want %d", n, maxTools)
	}
}
