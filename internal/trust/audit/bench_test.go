package audit

import (
	"testing"
	"time"
)

// BenchmarkRecord is what the line of a small call costs.
func BenchmarkRecord(b *testing.B) {
	r := Record{
		Time: time.Now(), Principal: "https://id.example.com ada", Client: "ide/1.2", Server: "files", Era: "modern", Method: "tools/call", Kind: "tool", Name: "read_file",
		Decision: "allow", Outcome: "ok", Took: 1234567, Address: "127.0.0.1", Request: "ABCDEF-1x3",
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = r.append(dst[:0])
	}
}
