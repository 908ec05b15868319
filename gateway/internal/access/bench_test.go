package access

import (
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const smallCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/a/b/c","lines":12},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ide","version":"1.2"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// BenchmarkHandler is what control costs a small call, the next Handler aside.
func BenchmarkHandler(b *testing.B) {
	rules := policy.New(false, []policy.Rule{
		{Deny: true, Tools: []string{"delete_*"}}, {Scopes: []string{"files"}, Tools: []string{"read_*", "list_*"}},
	})
	pins, err := pin.Open(pin.Options{Store: pin.Folder(b.TempDir()), Server: "files", Refuse: true})
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Open(audit.Options{Path: filepath.Join(b.TempDir(), "audit"), MaxPending: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close() }() // it was measured
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"nothing", Options{}},
		{"policy", Options{Policy: rules}},
		{"rate", Options{Limiter: policy.NewLimiter(policy.Rates{Principal: policy.Rate{PerSecond: 1e9, Burst: 1e9, Concurrent: 100}})}},
		{"pin", Options{Pins: pins}},
		{"audit", Options{Audit: log}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			h := New(tt.o).Handler(fixed{[]byte(`{"content":[{"type":"text","text":"buy milk"}]}`)})
			m, err := wire.Parse([]byte(smallCall), wire.Options{UniqueParams: true})
			if err != nil {
				b.Fatal(err)
			}
			req := &mcp.Request{
				Method: m.Method, Params: m.Params, Plain: m.Plain, Era: spec.Modern, Principal: "https://id.example.com ada",
				Identity:   &mcp.Identity{Scopes: []string{"mcp:use", "files"}},
				ClientInfo: []byte(`{"name":"ide","version":"1.2"}`),
			}
			req.Share.Principal = req.Principal
			b.ReportAllocs()
			for b.Loop() {
				res, err := h.Serve(b.Context(), req, nil)
				if err != nil {
					b.Fatal(err)
				}
				res.Release()
			}
		})
	}
}
