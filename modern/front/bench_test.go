package front

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/notes/today.md"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// BenchmarkServeMessage is what the front does to one call, from the parsed
// message to the written answer: no sockets, and nobody behind it.
func BenchmarkServeMessage(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("result=%d", n), func(b *testing.B) {
			const line = `served path=\"/srv/notes/today.md\" took=12ms\n`
			back := benchBack{body: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat(line, n/len(line)+1) + `"}]}`)}
			f, err := New(Options{Name: "peer", Handler: back, Describer: back, Subscriber: back, Admit: back.admit, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			m, err := wire.Parse([]byte(benchCall), wire.Options{})
			if err != nil {
				b.Fatal(err)
			}
			w, r := &benchWriter{header: http.Header{}}, benchHTTP(b)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				w.status, w.n = 0, 0
				if f.ServeMessage(w, r, &m, mcp.Sender{Share: mcp.Share{Principal: "somebody"}}); w.status != http.StatusOK || w.n < n {
					b.Fatalf("status %d, %d bytes, want 200 and at least %d", w.status, w.n, n)
				}
			}
		})
	}
}

func benchHTTP(b *testing.B) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "/mcp/peer", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	for name, value := range map[string]string{
		"Accept": spec.AcceptBoth, spec.HeaderProtocolVersion: string(spec.Rev20260728),
		spec.HeaderMethod: spec.MethodToolsCall, spec.HeaderName: "read",
	} {
		r.Header.Set(name, value)
	}
	return r
}

// benchBack answers everything with one result.
type benchBack struct{ body []byte }

func (s benchBack) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return mcp.NewResult(s.body, nil), nil
}

func (s benchBack) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{}, nil
}

func (s benchBack) Subscribe(*mcp.Request, *fanout.Mailbox, mcp.SubscribeOptions) (mcp.Subscription, error) {
	return nil, nil
}

func (s benchBack) admit(req *mcp.Request) error {
	req.Profile = mcp.Profile{Scope: "peer/0"}
	return nil
}

// benchWriter counts what it is given.
type benchWriter struct {
	header http.Header
	status int
	n      int
}

func (w *benchWriter) Header() http.Header { return w.header }
func (w *benchWriter) WriteHeader(s int)   { w.status = s }
func (w *benchWriter) Write(p []byte) (int, error) {
	w.n += len(p)
	return len(p), nil
}
