package back

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// BenchmarkBackServe is a call of a legacy client at the back, the scripted server
// included.
func BenchmarkBackServe(b *testing.B) {
	for _, kind := range []string{"http", "stream", "connection"} {
		for _, n := range []int{100, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/result=%d", kind, n), func(b *testing.B) {
				result := []byte(said(strings.Repeat("lorem ipsum ", n/12+1)))
				back := benchUpstream(b, kind, result)
				req := upRequest("tools/call", `{"name":"bench","arguments":{"a":1}}`)
				x := &backtest.Caller{}
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					res, err := back.Serve(context.Background(), req, x)
					if err != nil || len(res.Body) != len(result) {
						b.Fatal(res, err)
					}
					res.Release()
				}
			})
		}
	}
}

// benchUpstream returns a Back of a server that answers everything with result.
func benchUpstream(b *testing.B, kind string, result []byte) *Back {
	if kind == "connection" {
		back, peers := upLines(b, Options{})
		go func() { // ends with the connection
			p := <-peers
			for {
				text, err := p.Conn.Read()
				if err != nil {
					return
				}
				m, _ := wire.Parse(text, wire.Options{})
				_ = p.Conn.Write(wire.AppendResult(nil, m.ID, result, nil))
			}
		}()
		return back
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		m, _ := wire.Parse(data, wire.Options{})
		text := wire.AppendResult(nil, m.ID, result, nil)
		if kind == "stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", text)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text)
	}))
	b.Cleanup(srv.Close)
	return newUpBack(b, Options{Options: upstream.Options{URL: srv.URL}})
}
