package front

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
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

// A ping that is answered during the handshake is told of, too.
func TestQ06StrayEnvelopeDuringTheHandshake(t *testing.T) {
	met := quirks.New(quirks.Options{})
	b, peers := backWithPeers(t)
	l := legacytest.NewLine(t, newRig(t, func(o *Options) { o.Relayer, o.Quirks = b, met }).front.OpenConn)
	l.Send(legacytest.OddInitialize)
	p := <-peers
	hello := p.Want("initialize")
	l.Send(`{"jsonrpc":"2.0","id":"p","method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`)
	l.Want(`{"jsonrpc":"2.0","id":"p","result":{}}`)
	if got := fmt.Sprint(met.Meetings()); !strings.Contains(got, "stray-envelope") {
		t.Errorf("met %s, want the envelope", got)
	}
	p.Result(hello.ID, legacytest.OddResult)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
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

// What a modern server's results break, and legacy clients would refuse, is counted.
func TestM2L09WhatIsMendedForLegacyClientsIsCounted(t *testing.T) {
	met := quirks.New(quirks.Options{})
	st := newRig(t, func(o *Options) { o.Quirks = met })
	g := st.Enter(t, "2025-11-25")
	for i, result := range []string{`{"tools":null}`, `{"tools":[{"name":"a","title":null}]}`, `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`} {
		st.handle = func(context.Context, *mcp.Request, mcp.Caller) (string, error) { return result, nil }
		r := st.Send(t, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i), "Mcp-Session-Id", g.ID)
		if r.Status != 200 || strings.Contains(r.Body, "null") {
			t.Errorf("%s becomes %d %s, want a result without nulls", result, r.Status, r.Body)
		}
	}
	if got := fmt.Sprint(met.Meetings()); got != "[{list-missing  1} {null-members  1} {tool-schema  1}]" {
		t.Errorf("met %s, want each of them once", got)
	}
}
