package wire

import "testing"

func TestLeadingID(t *testing.T) {
	for _, tt := range []struct {
		name, start, id string
		isRequest       bool
	}{
		{"answer", `{"jsonrpc":"2.0","id":7,"result":{"a`, `7`, false},
		{"error", `{"id":"x", "error":{"a":1,"b`, `"x"`, false},
		{"request", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":1,"b`, `7`, true},
		{"notification", `{"jsonrpc":"2.0","method":"a","params":{"a":1,"b`, `null`, false},
		{"request whose method comes late", `{"jsonrpc":"2.0","id":7,"params":{"a":1,"b`, `null`, false},
		{"id comes late", `{"jsonrpc":"2.0","result":{"a":1,"id":7,"b`, `null`, false},
		{"batch", `[{"jsonrpc":"2.0","id":7,"result":{"a`, `null`, false},
		{"no JSON", `hello, world`, `null`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if id, isRequest := LeadingID([]byte(tt.start)); id.String() != tt.id || isRequest != tt.isRequest {
				t.Errorf("LeadingID(%s) = %s, %v, want %s, %v", tt.start, id, isRequest, tt.id, tt.isRequest)
			}
		})
	}
}
