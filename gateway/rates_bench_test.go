package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// answer serves every request of a modern client as fast as a server can.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the gateway's
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"content":[],"ttlMs":0,"cacheScope":"private"}}`)
}

// The share of rates in the cheapest call there is: without a socket, and of a server that does nothing.
// They always count, and may cost one percent. What is measured is a little more than they are.
func BenchmarkRatesShare(b *testing.B) {
	g, err := New(Options{Servers: []ServerOptions{{Name: "docs", Handler: http.HandlerFunc(answer), Era: Modern}}})
	if err != nil {
		b.Fatal(err)
	}
	g.Start()
	b.Cleanup(func() { _ = g.Shutdown(b.Context()) })
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{},"_meta":{"%s":"2026-07-28","%s":{},"%s":{"name":"a","version":"1"}}}}`,
		spec.MetaProtocolVersion, spec.MetaClientCapabilities, spec.MetaClientInfo)
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp/docs", strings.NewReader(body))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read"} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
	call := b.Elapsed() / time.Duration(b.N)
	const counted = 1_000_000
	m := metrics.New("test")
	count := func(method string) time.Duration {
		s := mcp.Served{Server: "docs", Client: "a/1", Method: method, Outcome: "ok", Took: time.Millisecond}
		m.Request(s)
		begun := time.Now()
		for range counted {
			m.Request(s)
		}
		return time.Since(begun) / counted
	}
	rate := count(spec.MethodToolsCall) - count(spec.MethodListen) // which has no rates, and one histogram less
	b.ReportMetric(float64(rate.Nanoseconds()), "ns/count")
	b.ReportMetric(float64(rate)/float64(call), "ratio")
	b.ReportMetric(0.01, "at-most")
}
