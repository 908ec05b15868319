package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestToolFailed(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	for _, tt := range []struct {
		method, result string
		want           bool
	}{
		{spec.MethodToolsCall, `{"content":[],"isError":true}`, true},
		{spec.MethodToolsCall, `{"isError" : true , "content":[{"type":"text","text":"` + long + `"}]}`, true},
		{spec.MethodToolsCall, `{"content":[],"isError":false}`, false},
		{spec.MethodToolsCall, `{"content":[],"isError":null}`, false},
		{spec.MethodToolsCall, `{"content":[],"isError":"true"}`, false},
		{spec.MethodToolsCall, `{"content":[{"type":"text","text":"\"isError\":true"}],"structuredContent":{"isError":true}}`, false},
		{spec.MethodToolsCall, `{"content":[{"type":"text","text":"` + long + `"}],"structuredContent":{"isError":true}}`, false},
		{spec.MethodToolsCall, `{}`, false},
		{spec.MethodPromptsGet, `{"isError":true}`, false},
	} {
		m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":`+tt.result+`}`), wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []*wire.Outline{m.Outline, nil} {
			if got := ToolFailed(tt.method, m.Result, o); got != tt.want {
				t.Errorf("ToolFailed(%s, %.60s…) = %v, want %v", tt.method, tt.result, got, tt.want)
			}
		}
	}
}

// This delays every result.
func BenchmarkToolFailed(b *testing.B) {
	for _, n := range []int{100, 10_000, 1 << 20} {
		b.Run(fmt.Sprintf("result=%d", n), func(b *testing.B) {
			text := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}}`
			m, err := wire.Parse([]byte(text), wire.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ToolFailed(spec.MethodToolsCall, m.Result, m.Outline) {
					b.Fatal("it says that the tool failed")
				}
			}
		})
	}
}
