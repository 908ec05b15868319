package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// The error has what a server wrote before it closed the connection, without secrets.
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
