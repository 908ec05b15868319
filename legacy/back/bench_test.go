package back

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// benchResults are the results that the benchmarks carry.
func benchResults() map[string]string {
	out := make(map[string]string)
	for name, n := range map[string]int{"small": 20, "64KiB": 64 << 10, "1MiB": 1 << 20} {
		out[name] = `{"content":[{"type":"text","text":"` + strings.Repeat("lorem ipsum, ", n/13) + `"}]}`
	}
	return out
}

func benchServe(b *testing.B, back *Back, size int) {
	req := ask("tools/call", `{"name":"bench","arguments":{"a":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`)
	c := &backtest.Caller{}
	serve := func() {
		res, err := back.Serve(context.Background(), req, c)
		if err != nil {
			b.Fatal(err)
		}
		res.Release()
	}
	serve() // opens the session
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}

func BenchmarkServePipe(b *testing.B) {
	for _, size := range []string{"small", "64KiB", "1MiB"} {
		b.Run(size, func(b *testing.B) {
			result := benchResults()[size]
			back, peers := pipeBack(b, Options{})
			go func() {
				p := <-peers
				p.Handshake(legacytest.Everything)
				for {
					text, err := p.Conn.Read()
					if err != nil {
						return
					}
					m, _ := wire.Parse(text, wire.Options{})
					_ = p.Conn.Write(wire.AppendResult(nil, m.ID, []byte(result), nil))
				}
			}()
			benchServe(b, back, len(result))
		})
	}
}

func BenchmarkServeHTTP(b *testing.B) {
	for _, kind := range []string{"json", "sse"} {
		for _, size := range []string{"small", "64KiB", "1MiB"} {
			b.Run(kind+"/"+size, func(b *testing.B) {
				result := []byte(benchResults()[size])
				p := legacytest.NewHTTPServer(b)
				p.Quiet = true
				p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
					if kind == "sse" {
						w.Header().Set("Content-Type", "text/event-stream")
						fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", m.ID)
						_, _ = w.Write(result)
						fmt.Fprint(w, "}\n\n")
						return
					}
					w.Header().Set("Content-Type", "application/json")
					text := wire.AppendResult(nil, m.ID, result, nil)
					w.Header().Set("Content-Length", fmt.Sprint(len(text)))
					_, _ = w.Write(text)
				}
				benchServe(b, newTestBack(b, Options{Options: upstream.Options{URL: p.URL}}), len(result))
			})
		}
	}
}
