package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What is told of errors: to clients, and to those who count them.
func TestErrorsAreSorted(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	refused := Refuse(spec.CodeInvalidParams, "no %s", "way")
	for _, tt := range []struct {
		ctx                   context.Context
		err                   error
		errorType, outcome    string
		code                  int64
		message               string
		later                 bool
		status, retry         int
		challenge, retryAfter string
	}{
		{err: ErrToolFailed, errorType: "tool_error", outcome: "tool_error", code: spec.CodeInternal, message: ErrToolFailed.Error()},
		{err: fmt.Errorf("server s: %w", wire.Errorf(-32000, "broken")), errorType: "-32000", outcome: "error", code: -32000, message: "broken"},
		{err: context.Canceled, errorType: "cancelled", outcome: "failed", code: spec.CodeInternal, message: "request cancelled"},
		{ctx: ended, err: errors.New("x"), errorType: "_OTHER", outcome: "cancelled", code: spec.CodeInternal, message: "x"},
		{err: context.DeadlineExceeded, errorType: "timeout", outcome: "failed", code: spec.CodeInternal, message: "context deadline exceeded"},
		{err: refused, errorType: "-32602", outcome: "refused", code: spec.CodeInvalidParams, message: "no way"},
		{err: RefuseForNow("busy"), errorType: "-32603", outcome: "refused", code: spec.CodeInternal, message: "busy", later: true, retry: 1, retryAfter: "1"},
		{err: &Refusal{Err: wire.Errorf(-32603, "slow down"), RetryAfter: 1500 * time.Millisecond, Status: 429}, errorType: "-32603", outcome: "refused", code: -32603, message: "slow down", status: 429, retry: 2, retryAfter: "2"},
		{err: &Refusal{Err: wire.Errorf(-32603, "more"), Scopes: []string{"a"}, Challenge: "Bearer"}, errorType: "-32603", outcome: "refused", code: -32603, message: "more", status: 403, challenge: "Bearer"},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		if got := ErrorType(tt.err); got != tt.errorType {
			t.Errorf("ErrorType(%v) = %s, want %s", tt.err, got, tt.errorType)
		}
		if got := OutcomeName(ctx, tt.err); got != tt.outcome {
			t.Errorf("OutcomeName(%v) = %s, want %s", tt.err, got, tt.outcome)
		}
		if got := WireError(tt.err); got.Code != tt.code || got.Message != tt.message {
			t.Errorf("WireError(%v) = %d, %s, want %d, %s", tt.err, got.Code, got.Message, tt.code, tt.message)
		}
		hint, header := HintOf(tt.err), http.Header{}
		if hint.SetHeader(header); MayTryLater(tt.err) != tt.later || hint.Status != tt.status || hint.RetryAfter != tt.retry || header.Get("Retry-After") != tt.retryAfter || header.Get("WWW-Authenticate") != tt.challenge {
			t.Errorf("%v: hint %+v, later %v, headers %v, want %+v", tt.err, hint, MayTryLater(tt.err), header, tt)
		}
	}
	if ErrorType(nil) != "" || OutcomeName(ended, nil) != "ok" {
		t.Errorf("no error: %q, %q", ErrorType(nil), OutcomeName(ended, nil))
	}
}

// hidden is an error of which clients are not told all.
type hidden struct{}

func (hidden) Error() string  { return "open /home/ada/key: denied" }
func (hidden) Public() string { return "a file can't be read" }

func TestInside(t *testing.T) {
	var inside *InsideError
	if err := Inside(-32603, "server %q: %v", "s", hidden{}); !errors.As(err, &inside) || err.Error() != `server "s": open /home/ada/key: denied (code -32603)` {
		t.Errorf("Inside = %v", err)
	} else if got, want := WireError(err).Message, `server "s": a file can't be read; more is in the log of mcpbridge`; got != want {
		t.Errorf("clients are told %s, want %s", got, want)
	}
	if err := Inside(-32603, "server %q", "s"); errors.As(err, &inside) || err.Error() != `server "s" (code -32603)` {
		t.Errorf("Inside without a secret = %#v, want a wire error", err)
	}
	ended := SessionEnded(hidden{})
	var public interface{ Public() string }
	if !errors.Is(ended, ErrSessionEnded) || !errors.As(ended, &public) || strings.Contains(public.Public(), "ada") || !strings.Contains(ended.Error(), "ada") {
		t.Errorf("SessionEnded = %v", ended)
	}
}

func TestM2L10ErrorsHaveTheURI(t *testing.T) {
	for _, tt := range []struct{ data, uri, want string }{
		{``, `"x:"`, `{"uri":"x:"}`},
		{`{"a":1}`, `"x:"`, `{"a":1,"uri":"x:"}`},
		{`{"uri":"y:"}`, `"x:"`, `{"uri":"y:"}`},
		{`"words"`, `"x:"`, `{"uri":"x:","data":"words"}`},
		{`"words"`, ``, `"words"`},
	} {
		var data, uri []byte
		if tt.data != "" {
			data = []byte(tt.data)
		}
		if tt.uri != "" {
			uri = []byte(tt.uri)
		}
		if got := string(WithURI(data, uri)); got != tt.want {
			t.Errorf("WithURI(%s, %s) = %s, want %s", tt.data, tt.uri, got, tt.want)
		}
	}
	for text, want := range map[string]string{"short": "short", strings.Repeat("é", 150): strings.Repeat("é", 100) + "…"} {
		if got := Shorten(text); got != want {
			t.Errorf("Shorten(%s) = %s, want %s", text, got, want)
		}
	}
}
