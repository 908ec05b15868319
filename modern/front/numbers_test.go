package front

import (
	"io"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Changes have numbers for replicas that ask for them, and for nobody else.
func TestNumbersAreForReplicasThatAsk(t *testing.T) {
	const (
		plain  = `"io.modelcontextprotocol/subscriptionId":1}`
		number = `"dev.mcpbridge/number":7,`
	)
	for _, tt := range []struct {
		name     string
		replicas bool
		asks     string
		meta     string
		want     string
	}{
		{"a replica that asks", true, "true", "", `"_meta":{` + number + plain},
		{"beside the server's own", true, "true", `{"v":1,"dev.mcpbridge/number":1}`, `"_meta":{"v":1,` + number + plain},
		{"a replica that does not", true, "false", "", `"_meta":{` + plain},
		{"a client", false, "true", "", `"_meta":{` + plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := moderntest.NewScript()
			f := frontOf(t, s, func(o *Options) { o.Numbers = tt.replicas })
			text := `{"jsonrpc":"2.0","id":1,"method":"` + spec.MethodListen + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
				`"io.modelcontextprotocol/clientCapabilities":{},"dev.mcpbridge/numbers":` + tt.asks + `},"notifications":{"toolsListChanged":true}}}`
			fol := moderntest.FollowRequest(t, f, spec.MethodListen, text)
			fol.Next()
			mail := <-s.Listened
			ev := fanout.Event{Topic: fanout.Topic{Kind: fanout.ToolsListChanged}, Number: 7}
			if tt.meta != "" {
				ev.Meta = []byte(tt.meta)
			}
			mail.Put(ev)
			fol.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + tt.want + `}}`)
			mail.End(io.EOF)
		})
	}
}
