package mcp

import (
	"strings"
	"testing"
)

func TestSubject(t *testing.T) {
	long := strings.Repeat("ä", maxSubject)
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"add"}`, "add"},
		{"prompts/get", `{"name":"p","arguments":{"name":"x"}}`, "p"},
		{"resources/read", `{"uri":"u:x"}`, "u:x"},
		{"resources/subscribe", `{"uri":"u:x"}`, "u:x"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"}}`, "p"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"u:{x}"}}`, "u:{x}"},
		{"logging/setLevel", `{"level":"debug"}`, "debug"},
		{"tools/list", `{"name":"x"}`, ""},
		{"tools/call", `{"name":7}`, ""},
		{"tools/call", ``, ""},
		{"tools/call", `{"name":"` + long + `"}`, long[:254] + "…"},
		{"tools/call", `{"name":"x` + long + `"}`, "x" + long[:254] + "…"},
	} {
		if got := Subject(tt.method, []byte(tt.params)); got != tt.want {
			t.Errorf("Subject(%s, %.40s) = %q, want %q", tt.method, tt.params, got, tt.want)
		}
	}
}
