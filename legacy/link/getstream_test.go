package link

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// nobody needs nothing that a server sends.
type nobody struct{}

func (nobody) Receive(context.Context, *wire.Message, *upstream.Call) {}
func (nobody) ListenChanged(bool, bool)                               {}

func testOptions(url string) *upstream.Options {
	o := &upstream.Options{Name: "scripted", URL: url, MaxMessage: 1 << 20}
	o.Fill(spec.Legacy)
	return o
}

// M2L-37's condition: replay is trusted only where the server gave ids and closed
// the stream itself after it said when to come back.
func TestM2L37TrustedReplay(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		abort        bool
		want         bool
	}{
		{"ids, retry, closed", "retry: 5\nid: 1\ndata:\n\n", false, true},
		{"no retry", "id: 1\ndata:\n\n", false, false},
		{"no id", "retry: 5\ndata: {}\n\n", false, false},
		{"cut", "retry: 5\nid: 1\ndata:\n\n", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, tt.stream)
				_ = http.NewResponseController(w).Flush()
				if tt.abort {
					panic(http.ErrAbortHandler)
				}
			}))
			defer server.Close()
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			o := testOptions(server.URL)
			e := NewEndpoint(o)
			defer e.Close()
			h := &streamable{l: New(o, nobody{}), e: e}
			h.adopt("", "")
			g := &getStream{h: h, settled: make(chan struct{}, 1)}
			cut, err := g.serve(t.Context(), streamCut{})
			if err != nil || cut.trusted != tt.want {
				t.Errorf("serve = %+v, %v, want trusted %v", cut, err, tt.want)
			}
		})
	}
}
