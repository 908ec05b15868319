package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What clients are told of an error holds no secret, and of this side only what they are
// to know. What the error is of, by which fronts decide, stays.
func TestHardeningToldErrors(t *testing.T) {
	t.Parallel()
	dialed := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 80}, Err: io.ErrUnexpectedEOF}
	inside := mcp.Inside(spec.CodeInternal, "server %q can't be reached: %v; try again", "x", transport.Reason{Err: dialed})
	for _, tt := range []struct {
		name              string
		err               error
		want, wantOfDebug string // empty for what went in
	}{
		{"nothing to leave out", errors.New("no room"), "no room", ""},
		{"an address", inside, `server "x" can't be reached: unexpected EOF; try again; more is in the log of mcpbridge`, `server "x" can't be reached: dial tcp 10.1.2.3:80: unexpected EOF; try again`},
		{"an address in a chain", fmt.Errorf("server can't be used: %w", dialed), "server can't be used: unexpected EOF", "server can't be used: dial tcp 10.1.2.3:80: unexpected EOF"},
		{"the end of a session", mcp.SessionEnded(transport.Reason{Err: dialed}), "the session upstream has ended: unexpected EOF", "the session upstream has ended: dial tcp 10.1.2.3:80: unexpected EOF"},
		{"a secret", errors.New("bad kn0wn-value"), "bad [hidden]", ""},
		{"a server's own error", wire.Errorf(1, "bad kn0wn-value at 10.1.2.3:80"), "bad [hidden] at 10.1.2.3:80", ""},
		{"a refusal", mcp.Refuse(spec.CodeMethodNotFound, "no kn0wn-value"), "no [hidden]", ""},
		{"an end of the client", fmt.Errorf("kn0wn-value: %w", context.Canceled), "request cancelled", ""},
	} {
		for _, debug := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/debug=%v", tt.name, debug), func(t *testing.T) {
				f := &ErrorFilter{redact.New("kn0wn-value"), debug}
				want := tt.want
				if debug && tt.wantOfDebug != "" {
					want = tt.wantOfDebug
				}
				told := f.ForClient(tt.err)
				if got := mcp.WireError(told); got.Message != want {
					t.Errorf("clients are told %q, want %q", got.Message, want)
				}
				if !errors.Is(told, tt.err) {
					t.Errorf("told(%v) = %v, which is another", tt.err, told)
				}
			})
		}
	}
}

// An answer from which a secret was taken is still a message, even if the secret is JSON
// itself.
func TestHardeningAnswersStayMessages(t *testing.T) {
	t.Parallel()
	secret := `{"type":"service_account"}`
	f := &ErrorFilter{Secrets: redact.New(secret, `quo"ted-value`)}
	for _, tt := range []struct{ data, want string }{
		{`{"got":"plain"}`, `{"got":"plain"}`},
		{`{"got":` + secret + `}`, ``},
		{`"quo\"ted-value"`, `"[hidden]"`},
	} {
		text := []byte(`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m","data":` + tt.data + `}}`)
		m, err := wire.Parse(text, wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Parse(f.CleanAnswer(text, m.Error), wire.Options{})
		if err != nil || got.ID.String() != `"a"` || got.Error.Message != "m" || string(got.Error.Data) != tt.want {
			t.Errorf("an answer with data %s became %+v, %v, want data %s", tt.data, got, err, tt.want)
		}
	}
	if f.CleanAnswer([]byte("x"), &wire.Error{Data: json.RawMessage(strings.Repeat("1", 9))}) == nil {
		t.Error("an answer without a secret is lost")
	}
}
