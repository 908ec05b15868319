package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

var benchSizes = []int{100, 10 << 10, 64 << 10, 1 << 20}

// BenchmarkAppendResult takes results of a called tool: text as people write it, and
// JSON in a string, where every tenth byte needs a look.
func BenchmarkAppendResult(b *testing.B) {
	for _, text := range []struct{ name, word string }{{"prose", "lorem ipsum "}, {"json", `{"a":"b"},`}} {
		for _, size := range benchSizes {
			quoted := wire.Quote(strings.Repeat(text.word, size/len(text.word)+1)[:size])
			body := fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`, quoted)
			b.Run(fmt.Sprintf("%s/bytes=%d", text.name, size), func(b *testing.B) {
				benchResult(b, "tools/call", body, NewTools())
			})
		}
	}
}

func BenchmarkAppendStructured(b *testing.B) {
	for _, size := range benchSizes {
		body := fmt.Appendf(nil, `{"resultType":"complete","structuredContent":[%s0]}`, strings.Repeat(`{"n":1,"s":"x"},`, size/16))
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) { benchResult(b, "tools/call", body, NewTools()) })
	}
}

func BenchmarkAppendTools(b *testing.B) {
	tool := `{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"text"}},"additionalProperties":false},"outputSchema":{"type":"array","items":{"$ref":"#/$defs/T"}}},`
	for _, n := range []int{1, 100, 10_000} {
		body := fmt.Appendf(nil, `{"tools":[%s],"resultType":"complete","ttlMs":0,"cacheScope":"public"}`, strings.TrimSuffix(strings.Repeat(tool, n), ","))
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			benchResult(b, "tools/list", body, NewTools())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/tool")
		})
	}
}

func benchResult(b *testing.B, method string, body []byte, tools *Tools) {
	b.Helper()
	params := []byte(`{"name":"x","arguments":{}}`)
	if err := wire.Check(body, 0); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	dst := make([]byte, 0, 3*len(body)+1024)
	for b.Loop() {
		out, _, err := AppendResult(dst, spec.Rev20250618, method, params, body, tools)
		if err != nil || len(out) == 0 {
			b.Fatal(err)
		}
	}
}
