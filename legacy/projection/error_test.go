package projection

import (
	"math"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestL2M09Errors(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		code         int64
		data         string
		wantCode     int64
		wantData     string
		says         string
	}{
		{"an unknown resource", "resources/read", -32602, `{"uri":"a:b"}`, -32002, `{"uri":"a:b"}`, "told"},
		{"another mistake in reading", "resources/read", -32602, `{"x":1}`, -32602, `{"x":1}`, "told"},
		{"a URI elsewhere", "tools/call", -32602, `{"uri":"a:b"}`, -32602, `{"uri":"a:b"}`, "told"},
		{"a capability", "tools/call", -32021, `{"requiredCapabilities":{"elicitation":{"url":{}},"sampling":{}}}`, -32603,
			`{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{"url":{}},"sampling":{}}}}`, "declares the capability elicitation.url, sampling"},
		{"a capability without a name", "tools/call", -32021, ``, -32603, `{"code":-32021}`, "use a client"},
		{"a revision", "tools/call", -32022, `{"supported":["2027-01-01"],"requested":"2026-07-28"}`, -32603,
			`{"code":-32022,"data":{"supported":["2027-01-01"],"requested":"2026-07-28"}}`, "speaks 2027-01-01: upgrade mcpbridge"},
		{"a revision without names", "tools/call", -32022, ``, -32603, `{"code":-32022}`, "no revision that mcpbridge knows"},
		{"a header", "tools/call", -32020, ``, -32603, `{"code":-32020}`, "list the tools again"},
		{"a code of later revisions", "tools/call", -32050, `7`, -32050, `7`, "told"},
		{"the first of the range", "tools/call", -32023, ``, -32023, ``, "told"},
		{"the last of the range", "tools/call", -32099, `{"a":1}`, -32099, `{"a":1}`, "told"},
		{"a code that 2025-11-25 reads as its own", "tools/call", -32042, `{}`, -32603, `{"code":-32042,"data":{}}`, "told"},
		{"a code of the server's own", "tools/call", -32000, `{}`, -32000, `{}`, "told"},
		{"beyond the range", "tools/call", -32100, ``, -32100, ``, "told"},
		{"no code", "prompts/get", 0, ``, 0, ``, "told"},
		{"a positive code", "tools/call", 418, `"tea"`, 418, `"tea"`, "told"},
		{"a negative code", "tools/call", -1, ``, -1, ``, "told"},
		{"the largest code", "tools/call", math.MaxInt64, ``, math.MaxInt64, ``, "told"},
		{"an internal error", "prompts/get", -32603, `{"a":1}`, -32603, `{"a":1}`, "told"},
		{"a method that is not there", "prompts/get", -32601, ``, -32601, ``, "told"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &wire.Error{Code: tt.code, Message: "told"}
			if tt.data != "" {
				in.Data = []byte(tt.data)
			}
			for _, rev := range spec.Revisions(spec.Legacy) {
				got := Error(rev, tt.method, in)
				if tt.code == tt.wantCode && got.Message != in.Message {
					t.Errorf("Error(%s, %s, %v) says %q, want the text unchanged", rev, tt.method, in, got.Message)
				}
				if got.Code != tt.wantCode || string(got.Data) != tt.wantData || !strings.HasPrefix(got.Message, "told") || !strings.Contains(got.Message, tt.says) {
					t.Errorf("Error(%s, %s, %v with %s) = %v with %s, want code %d with %s", rev, tt.method, in, in.Data, got, got.Data, tt.wantCode, tt.wantData)
				}
			}
		})
	}
}
