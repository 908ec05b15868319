package redact

import (
	"fmt"
	"strings"
	"testing"
)

// A log line with and without a secret, for several numbers of known secrets.
func BenchmarkString(b *testing.B) {
	clean := `request upstream=files method=tools/call era=legacy took=1.2ms outcome=error err="server refused it: HTTP 502 Bad Gateway"`
	for _, secrets := range []int{1, 100, 10_000} {
		var values []string
		for i := range secrets {
			values = append(values, fmt.Sprintf("sk-%032x", i*7919))
		}
		r := New(values...)
		for _, text := range []struct{ name, line string }{
			{"none", clean}, {"hit", clean + values[0]}, {"4KiB", strings.Repeat(clean, 33)},
		} {
			b.Run(fmt.Sprintf("secrets=%d/%s", secrets, text.name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text.line)))
				for b.Loop() {
					r.String(text.line)
				}
			})
		}
	}
}
