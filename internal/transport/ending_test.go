package transport

import "testing"

func TestWithoutSecrets(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"cannot open /etc/x: permission denied", "cannot open /etc/x: permission denied"},
		{"Authorization: Bearer abc.def", "Authorization: [hidden] [hidden]"},
		{"postgres://ada:pw@db/x unreachable", "postgres://ada:[hidden]@db/x unreachable"},
		{`{"api_key": "12345"}`, `{"api_key": "[hidden]"}`},
		{"bad key sk-live-0123456789abcdef", "bad key [hidden]"},
		{"GITHUB_TOKEN=ghp_0123456789abcdef0123 rejected", "GITHUB_TOKEN=[hidden] rejected"},
	} {
		if got := withoutSecrets(tt.in); got != tt.want {
			t.Errorf("withoutSecrets(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
