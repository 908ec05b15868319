package protocol

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestL2M10ParameterValues(t *testing.T) {
	m := Mirror{Header: "Mcp-Param-X", Path: []string{"o", "x"}}
	for _, tt := range []struct {
		arguments, want string
		ok              bool
	}{
		{`{"o":{"x":"us-west1"}}`, "us-west1", true},
		{`{"o":{"x":""}}`, "=?base64??=", true},
		{`{"o":{"x":" padded "}}`, "=?base64?IHBhZGRlZCA=?=", true},
		{`{"o":{"x":"line1\nline2"}}`, "=?base64?bGluZTEKbGluZTI=?=", true},
		{`{"o":{"x":"=?base64?literal?="}}`, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", true},
		{`{"o":{"x":true}}`, "true", true},
		{`{"o":{"x":-7}}`, "-7", true},
		{`{"o":{"x":42.0}}`, "42", true},
		{`{"o":{"x":9007199254740991}}`, "9007199254740991", true},
		{`{"o":{"x":9007199254740992}}`, "", false},
		{`{"o":{"x":1.5}}`, "", false},
		{`{"o":{"x":null}}`, "", false},
		{`{"o":{"x":{}}}`, "", false},
		{`{"o":{}}`, "", false},
		{`{"x":1}`, "", false},
		{``, "", false},
	} {
		got, ok := mirrored(m, []byte(tt.arguments))
		if ok {
			got = spec.EncodeHeader(got)
		}
		if ok != tt.ok || got != tt.want {
			t.Errorf("header of %s = %q, %v, want %q, %v", tt.arguments, got, ok, tt.want, tt.ok)
		}
	}
}
