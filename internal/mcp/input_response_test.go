package mcp

import "testing"

func TestL2M13WellFormedAnswers(t *testing.T) {
	for _, tt := range []struct {
		method, answer string
		want           bool
	}{
		{"elicitation/create", `{"action":"accept","content":{}}`, true},
		{"elicitation/create", `{"action":"decline"}`, true},
		{"elicitation/create", `{"action":"cancel"}`, true},
		{"elicitation/create", `{"action":"maybe"}`, false},
		{"elicitation/create", `{"action":"accept","content":[]}`, false},
		{"elicitation/create", `{}`, false},
		{"elicitation/create", `"accept"`, false},
		{"sampling/createMessage", `{"role":"assistant","content":{"type":"text"}}`, true},
		{"sampling/createMessage", `{"role":"assistant","content":[]}`, true},
		{"sampling/createMessage", `{"content":{}}`, false},
		{"sampling/createMessage", `{"role":"assistant","content":"hi"}`, false},
		{"roots/list", `{"roots":[]}`, true},
		{"roots/list", `{"roots":{}}`, false},
		{"com.example/ask", `{}`, true},
	} {
		if got := WellFormed(tt.method, []byte(tt.answer)); got != tt.want {
			t.Errorf("WellFormed(%s, %s) = %v, want %v", tt.method, tt.answer, got, tt.want)
		}
	}
}
