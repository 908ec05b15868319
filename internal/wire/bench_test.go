package wire

import (
	"fmt"
	"strings"
	"testing"
)

// resultOf returns a response whose result has size bytes of text: lines of a log, with
// quotes and line ends, at which a scanner stops.
func resultOf(size int) []byte {
	const line = `2025-11-25T10:00:00Z INFO request served path="/srv/notes/today.md" took=12ms` + "\n"
	text := strings.Repeat(line, size/len(line)+1)[:size]
	result := append([]byte(`{"content":[{"type":"text","text":`), AppendString(nil, text)...)
	return AppendResult(nil, NumberID(7), append(result, `}],"isError":false}`...), nil)
}

var sizes = []int{100, 64 << 10, 1 << 20}

// BenchmarkParseResult parses a server's response, as a back does.
func BenchmarkParseResult(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			text := resultOf(n)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if m, err := Parse(text, Options{}); err != nil || m.Result == nil {
					b.Fatal(m, err)
				}
			}
		})
	}
}

// BenchmarkParseRequest parses a modern client's request, as the front does.
func BenchmarkParseRequest(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/notes/today.md","lines":100},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if m, err := Parse(text, Options{UniqueParams: true}); err != nil || m.Params == nil {
			b.Fatal(m, err)
		}
	}
}

// BenchmarkCheck measures the part of Parse that reads every byte.
func BenchmarkCheck(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			text := resultOf(n)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(text, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMembers(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			text := resultOf(n)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if Get(text, "absent") != nil {
					b.Fatal("found a member that does not exist")
				}
			}
		})
	}
}
