package projection

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestServerCapabilities(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"L2M-01 changes and logging are kept", `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"prompts":{},"logging":{},"completions":{}}`,
			`{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"prompts":{},"logging":{},"completions":{}}`},
		{"M2L-07 extensions cross but for tasks", `{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"a":1}},"experimental":{"x":{"b":[1]}}}`,
			`{"extensions":{"io.modelcontextprotocol/ui":{"a":1}},"experimental":{"x":{"b":[1]}}}`},
		{"M2L-07 nothing but tasks", `{"extensions":{"io.modelcontextprotocol/tasks":{}},"tasks":{"list":{}}}`, `{}`},
		{"L2M-01 nulls go, unknown ones stay", `{"tools":null,"x":null}`, `{"x":null}`},
		{"L2M-01 none", ``, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				if got := string(AppendServerCapabilities([]byte("~"), rev, []byte(tt.in))); got != "~"+tt.want {
					t.Errorf("AppendServerCapabilities(%s, %s) = %s, want %s", rev, tt.in, got, tt.want)
				}
			}
		})
	}
}

func TestL2M10ClientCapabilities(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"roots do not change", `{"roots":{"listChanged":true,"x":1},"sampling":{}}`, `{"roots":{"x":1},"sampling":{}}`},
		{"no tasks", `{"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"a":{}}}`, `{"experimental":{"a":{}}}`},
		{"nulls", `{"roots":null,"sampling":null,"elicitation":null,"x":null}`, `{"x":null}`},
		{"none", ``, `{}`},
		// L2M-13: what is newer than the revision counts, too.
		{"forms", `{"elicitation":{}}`, `{"elicitation":{}}`},
		{"forms and URLs", `{"elicitation":{"url":{},"form":{"applyDefaults":true}}}`, `{"elicitation":{"url":{},"form":{"applyDefaults":true}}}`},
		{"URLs alone", `{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{"sampling with tools", `{"sampling":{"tools":{},"context":{}}}`, `{"sampling":{"tools":{},"context":{}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				if got := string(AppendClientCapabilities([]byte("~"), rev, []byte(tt.in))); got != "~"+tt.want {
					t.Errorf("AppendClientCapabilities(%s, %s) = %s, want %s", rev, tt.in, got, tt.want)
				}
			}
		})
	}
}
