package live

import (
	"net/http"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// What a call costs while somebody looks at a gateway through which far more pass than are
// recorded, with messages and headers: at 10,000 per second, of which 25 are recorded, that is what
// one costs that is not, and a four-hundredth of one that is.
func BenchmarkCall(b *testing.B) {
	header := http.Header{"Content-Type": {"application/json"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"x"}}
	message := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}`)
	for _, bm := range []struct {
		name           string
		looked, inside bool
	}{{"nobody looks", false, false}, {"beyond the pace", true, false}, {"recorded", true, true}} {
		b.Run(bm.name, func(b *testing.B) {
			s := newStage("a-secret-of-the-configuration")
			s.SetBodies(true)
			if bm.looked {
				defer s.Look()()
			}
			b.ReportAllocs()
			for b.Loop() {
				if bm.inside {
					s.calls.used.Store(0)
				} else {
					s.calls.used.Store(1 << 62)
				}
				a := s.observers.Arrive(trace.Arrival{Protocol: "http", Header: header})
				r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Name: "x", Era: "modern", Arrival: a})
				r.Received(message)
				x := r.Upstream(trace.Exchange{Server: "s", Method: "tools/call", Era: "legacy"})
				x.Sent(message)
				x.Head(trace.Head{Direction: trace.Received, Status: 200, Fields: header})
				x.Received(message)
				x.End(nil)
				r.Sent(message)
				r.Head(trace.Head{Direction: trace.Sent, Status: 200, Fields: header})
				r.End(nil)
			}
		})
	}
}
