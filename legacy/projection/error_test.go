package projection

import (
	"math"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestL2M09Errors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		code     int64
		data     string
		wantCode int64
		wantData string
		says     string
	}{
		{"an unknown resource", -32602, `{"uri":"a:b"}`, -32602, `{"uri":"a:b"}`, "told"},
		{"an unknown resource, the old way", -32002, `{"uri":"a:b"}`, -32002, `{"uri":"a:b"}`, "told"},
		{"a capability", -32021, `{"requiredCapabilities":{"elicitation":{"url":{}},"sampling":{}}}`, -32603,
			`{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{"url":{}},"sampling":{}}}}`, "declares the capability elicitation.url, sampling"},
		{"a capability without a name", -32021, ``, -32603, `{"code":-32021}`, "use a client"},
		{"a revision", -32022, `{"supported":["2027-01-01"],"requested":"2026-07-28"}`, -32603,
			`{"code":-32022,"data":{"supported":["2027-01-01"],"requested":"2026-07-28"}}`, "speaks 2027-01-01: upgrade mcpbridge"},
		{"a revision without names", -32022, ``, -32603, `{"code":-32022}`, "no revision that mcpbridge knows"},
		{"a header", -32020, ``, -32603, `{"code":-32020}`, "list the tools again"},
		{"a code of later revisions", -32050, `7`, -32050, `7`, "told"},
		{"the first of the range", -32023, ``, -32023, ``, "told"},
		{"the last of the range", -32099, `{"a":1}`, -32099, `{"a":1}`, "told"},
		{"a code that 2025-11-25 reads as its own", -32042, `{}`, -32603, `{"code":-32042,"data":{}}`, "told"},
		{"a code of the server's own", -32000, `{}`, -32000, `{}`, "told"},
		{"beyond the range", -32100, ``, -32100, ``, "told"},
		{"no code", 0, ``, 0, ``, "told"},
		{"a positive code", 418, `"tea"`, 418, `"tea"`, "told"},
		{"a negative code", -1, ``, -1, ``, "told"},
		{"the largest code", math.MaxInt64, ``, math.MaxInt64, ``, "told"},
		{"an internal error", -32603, `{"a":1}`, -32603, `{"a":1}`, "told"},
		{"a method that is not there", -32601, ``, -32601, ``, "told"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &wire.Error{Code: tt.code, Message: "told"}
			if tt.data != "" {
				in.Data = []byte(tt.data)
			}
			got := Error(in)
			if tt.code == tt.wantCode && got.Message != in.Message {
				t.Errorf("Error(%v) says %q, want the text unchanged", in, got.Message)
			}
			if got.Code != tt.wantCode || string(got.Data) != tt.wantData || !strings.HasPrefix(got.Message, "told") || !strings.Contains(got.Message, tt.says) {
				t.Errorf("Error(%v with %s) = %v with %s, want code %d with %s", in, in.Data, got, got.Data, tt.wantCode, tt.wantData)
			}
		})
	}
}
