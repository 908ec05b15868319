package protocol

import (
	"fmt"
	"testing"
)

func TestL2M11InvalidTools(t *testing.T) {
	prop := func(schema string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"a":%s}}`, schema)
	}
	for _, tt := range []struct {
		name, schema string
		valid        bool
	}{
		{"none", prop(`{"type":"number"}`), true},
		{"string", prop(`{"type":"string","x-mcp-header":"A"}`), true},
		{"deep", prop(`{"properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}`), true},
		{"a property of that name", `{"type":"object","properties":{"x-mcp-header":{"type":"number"}}}`, true},
		{"a default of that name", prop(`{"type":"object","default":{"x-mcp-header":7}}`), true},
		{"number", prop(`{"type":"number","x-mcp-header":"A"}`), false},
		{"object", prop(`{"type":"object","x-mcp-header":"A"}`), false},
		{"no type", prop(`{"x-mcp-header":"A"}`), false},
		{"empty", prop(`{"type":"string","x-mcp-header":""}`), false},
		{"no string", prop(`{"type":"string","x-mcp-header":true}`), false},
		{"no token", prop(`{"type":"string","x-mcp-header":"a b"}`), false},
		{"a line end", prop(`{"type":"string","x-mcp-header":"a\r\nb"}`), false},
		{"twice", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, false},
		{"at the root", `{"type":"object","x-mcp-header":"A"}`, false},
		{"in items", prop(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), false},
		{"in anyOf", prop(`{"anyOf":[{"type":"string","x-mcp-header":"A"}]}`), false},
		{"in $defs", `{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`, false},
		{"below else", `{"type":"object","else":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, false},
	} {
		if fault := AnnotationFault([]byte(tt.schema)); (fault == "") != tt.valid {
			t.Errorf("%s: AnnotationFault(%s) = %q, want valid %v", tt.name, tt.schema, fault, tt.valid)
		}
	}
}
