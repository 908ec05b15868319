package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What clients are told has the server's name and the next step; what is theirs, or the
// server's own, they get as it is.
func TestClientError(t *testing.T) {
	o := &Options{Name: "s"}
	o.Fill(spec.Legacy)
	own := wire.Errorf(7, "of the server")
	refusal := &mcp.Refusal{Err: wire.Errorf(8, "another token")}
	refused := errors.New("connection refused")
	for _, tt := range []struct {
		name, method string
		err          error
		same         error  // wanted itself, if not nil
		want         string // in the text
	}{
		{"the server's", "tools/call", own, own, ""},
		{"the client has left", "tools/call", context.Canceled, context.Canceled, ""},
		{"the client's credential", "tools/call", &Failure{Cause: &CredentialError{Refusal: refusal}}, refusal, ""},
		{"the gateway's credential", "tools/call", &Failure{Cause: &CredentialError{Err: errors.New("has no token"), Step: "write one"}}, nil, `server "s" has no token; write one`},
		{"the end", "tools/call", &Failure{Cause: mcp.ErrShutdown}, nil, mcp.ErrShutdown.Error()},
		{"time of a call", "tools/call", fmt.Errorf("x: %w", ErrTooLong), nil, "did not answer tools/call within 1h0m0s; raise timeouts.max if that"},
		{"time of a list", "tools/list", fmt.Errorf("x: %w", ErrTooLong), nil, "did not answer tools/list in time (1m0s, at most 1h0m0s with progress); raise timeouts.request"},
		{"too long", "tools/call", &Failure{Cause: &transport.TooLongError{Limit: 9}}, nil, "with more than 9 bytes; raise limits.upstream_message"},
		{"unreadable", "tools/call", unreadable(errors.New("no JSON")), nil, "a response that can't be read: no JSON"},
		{"too deep", "tools/call", unreadable(wire.Check([]byte("[[]]"), 1)), nil, "nested too deeply; raise limits.depth"},
		{"a call that may have run", "tools/call", &Failure{Cause: refused}, nil, `was lost while it ran tools/call: connection refused; the request may have taken effect and was not repeated`},
		{"a list that may have run", "tools/list", &Failure{Cause: refused}, nil, "can't be reached: connection refused; check that it runs"},
		{"a call that was not sent", "tools/call", &Failure{Cause: refused, Fate: NotSent}, nil, "can't be reached: connection refused"},
		{"no path", "tools/call", (&StatusError{Code: 404}).Failure(), nil, "refused tools/call: HTTP 404 Not Found; check the path of its URL"},
		{"its own words", "tools/call", (&StatusError{Code: 404, Note: "no such tenant"}).Failure(), nil, "HTTP 404 Not Found: no such tenant"},
		{"credentials", "tools/call", (&StatusError{Code: 401, Note: "who?"}).Failure(), nil, "check the credentials in the server's headers"},
		{"a slash too few", "tools/call", (&StatusError{Code: 307, Slash: true}).Failure(), nil, "put a / at the end of its URL"},
		{"elsewhere", "tools/call", (&StatusError{Code: 302}).Failure(), nil, "configure the URL it leads to"},
	} {
		got := o.ClientError(tt.method, tt.err)
		if tt.same != nil && !errors.Is(got, tt.same) || !strings.Contains(got.Error(), tt.want) || tt.same == nil && !strings.Contains(got.Error(), `server "s"`) {
			t.Errorf("%s: ClientError() = %v, want %q", tt.name, got, cmp.Or(tt.want, fmt.Sprint(tt.same)))
		}
	}
}

// Nothing runs twice: only what was not run, or only reads, is sent again, and only where
// that may help.
func TestRepeatable(t *testing.T) {
	for _, tt := range []struct {
		f          Failure
		call, list bool
	}{
		{Failure{}, false, false},
		{Failure{Fate: NotSent}, false, false},
		{Failure{Again: true}, false, true},
		{Failure{Lost: true}, false, true},
		{Failure{Fate: NotSent, Again: true}, true, true},
		{Failure{Fate: Refused, Lost: true}, true, true},
	} {
		if call, list := tt.f.Repeatable(spec.MethodToolsCall), tt.f.Repeatable(spec.MethodToolsList); call != tt.call || list != tt.list {
			t.Errorf("%+v: a call may be repeated: %v, a list: %v; want %v and %v", tt.f, call, list, tt.call, tt.list)
		}
	}
	if AsFailure(nil) != nil || AsFailure(errors.New("x")) != nil {
		t.Error("AsFailure() found a Failure where none is")
	}
}

// Only a request of which nothing was sent at all, since its back was closed, may be served by another
// back.
func TestMarkUnsent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		before bool
		want   bool
	}{
		{"closed", &Failure{Cause: fmt.Errorf("connecting to it: %w", mcp.ErrShutdown), Fate: NotSent}, false, true},
		{"closed after a round", &Failure{Cause: mcp.ErrShutdown, Fate: NotSent}, true, false},
		{"closed while it ran", &Failure{Cause: mcp.ErrShutdown}, false, false},
		{"closed, it is not known when", mcp.ErrShutdown, false, false},
		{"down", &Failure{Cause: errors.New("connection refused"), Fate: NotSent}, false, false},
	} {
		switch got := MarkUnsent(tt.err, tt.before); {
		case errors.Is(got, mcp.ErrNotSent) != tt.want:
			t.Errorf("%s: MarkUnsent() = %v, want it marked: %v", tt.name, got, tt.want)
		case !tt.want && got != tt.err:
			t.Errorf("%s: MarkUnsent() = %v, want the same error", tt.name, got)
		}
	}
}

// An HTTP status says whether the server may have run the request, and whether it may be of
// the other era.
func TestStatusError(t *testing.T) {
	for _, tt := range []struct {
		code    int
		fate    Fate
		foreign bool
	}{
		{307, Refused, false}, {400, Refused, true}, {401, Refused, false}, {404, Refused, true}, {405, Refused, true},
		{429, Refused, false}, {500, MayHaveRun, false}, {503, MayHaveRun, false}, {299, MayHaveRun, false},
	} {
		e := &StatusError{Code: tt.code}
		if e.Fate() != tt.fate || LooksForeign(e.Code) != tt.foreign || e.Failure().Fate != tt.fate || e.Public() != e.Error() {
			t.Errorf("%v: fate %v, foreign %v; want %v and %v", e, e.Fate(), LooksForeign(e.Code), tt.fate, tt.foreign)
		}
	}
	if text := (&StatusError{Code: 799}).Error(); text != "HTTP 799 (unknown status)" {
		t.Errorf("Error() = %s", text)
	}
}
