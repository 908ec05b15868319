package front

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
)

// An envelope that reaches this front counts for nothing, and is told of.
func TestQ06StrayEnvelopeIsTold(t *testing.T) {
	met := quirks.New(quirks.Options{})
	st := newRig(t, func(o *Options) { o.Quirks = met })
	g := st.Enter(t, "2025-11-25")
	if r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`, "Mcp-Session-Id", g.ID); r.Status != 200 {
		t.Errorf("= %d %s, want a result", r.Status, r.Body)
	}
	if got := fmt.Sprint(met.Meetings()); got != "[{stray-envelope t/0 1}]" {
		t.Errorf("met %s, want the envelope", got)
	}
}

// Params that are null are read in batches, too, unless they are not tolerated.
func TestQ07NullParamsInABatch(t *testing.T) {
	for off, want := range map[bool]string{false: `"result":{}`, true: `"code":-32600`} {
		met := quirks.New(quirks.Options{Off: func(string) bool { return off }})
		st := newRig(t, func(o *Options) { o.Quirks = met })
		g := st.Enter(t, "2025-03-26")
		r := st.Send(t, "POST", `[{"jsonrpc":"2.0","id":1,"method":"ping","params":null}]`, "Mcp-Session-Id", g.ID)
		if !strings.Contains(r.Body, want) || len(met.Meetings()) > 0 == off {
			t.Errorf("with the quirk off: %v: %s and %v, want %s", off, r.Body, met.Meetings(), want)
		}
	}
}
