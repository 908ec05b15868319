package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
)

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

// What a server says as it closes a connection is shown, but for its secrets.
func TestEndingOfClosed(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&CloseError{Code: 1008, Reason: "token=abc is expired"}, "closed the WebSocket with code 1008 (policy violation): token=[hidden] is expired"},
		{&CloseError{Code: 4001}, "code 4001"},
		{errors.New("cut"), "its connection broke: cut"},
		{io.EOF, "it closed the connection, or exited"},
	} {
		if got := Ending(nil, tt.err); !strings.HasSuffix(got.Error(), tt.want) {
			t.Errorf("Ending(%v) = %v, want %q at its end", tt.err, got, tt.want)
		}
	}
}
