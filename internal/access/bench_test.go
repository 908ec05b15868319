package access

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/audit"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/pin"
	"github.com/mcpbridge/mcpbridge/internal/policy"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A fixed Handler returns always the same result.
type fixed struct{ body []byte }

func (f fixed) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return mcp.NewResult(f.body, nil), nil
}

// BenchmarkHandler is what control costs a small call, the next Handler aside.
func BenchmarkHandler(b *testing.B) {
	rules := policy.New(false, []policy.Rule{
		{Deny: true, Tools: []string{"delete_*"}}, {Scopes: []string{"files"}, Tools: []string{"read_*", "list_*"}},
	})
	pins, err := pin.Open(pin.Options{Dir: b.TempDir(), Server: "files", Refuse: true})
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
			req := &mcp.Request{
				Method: spec.MethodToolsCall, Era: spec.Modern, Principal: "https://id.example.com ada",
				Params:     []byte(`{"name":"read_file","arguments":{"path":"/a/b/c","lines":12},"_meta":{"progressToken":7}}`),
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
