package upstream

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type drops struct {
	mcp.NoMetrics
	n atomic.Int32
}

func (d *drops) Dropped(string, string) { d.n.Add(1) }

// A response that stands at the end of a stream as it is, without framing, is taken once:
// what follows it is the end.
func TestM2L15UnframedResponseIsTakenOnce(t *testing.T) {
	const text = ": wait\n\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"late"}}`
	dropped := &drops{}
	h := NewHTTP(&Options{
		Name: "scripted", URL: "http://server.example/", MaxMessage: 1 << 20,
		Logger: slog.New(slog.DiscardHandler), Metrics: dropped,
		RoundTripper: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
		}),
	}, Reading{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r, err := h.Post(ctx, &Call{ID: 1, Method: "tools/call", Cancel: cancel}, http.Header{}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Next()
	if err != nil || m.Error == nil || m.Error.Message != "late" {
		t.Fatalf("Next() = %v, %v, want the error", m, err)
	}
	response := r.Response()
	response.Free()
	if n := dropped.n.Load(); n != 0 {
		t.Errorf("%d messages were dropped after it, want none", n)
	}
}
