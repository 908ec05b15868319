package group

import (
	"fmt"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What is known of params since they were parsed makes them no others, and no member passes that
// some servers would take for the one that is read.
func TestParamsAsTheyWereParsed(t *testing.T) {
	for params, odd := range map[string]bool{
		`{"name":"a__x"}`: false, `{"arguments":{"Name":1},"name":"a__x","_meta":{}}`: false, `{"name":"a__x","requestState":"s","inputResponses":{},"_meta":{"x":1}}`: false,
		`{"Name":"a__x"}`: true, `{"name":"a__x","RequestState":"s"}`: true, `{"name":"a__x","Name":"b__x"}`: true, `{"a":1,"b":2,"c":3,"d":4,"NAME":"a__x"}`: true,
		`{"arguments":{"name":"a__x"}}`: true, `{"name":7}`: true,
	} {
		m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`), wire.Options{UniqueParams: true})
		if err != nil {
			t.Fatal(err)
		}
		req := &mcp.Request{Method: m.Method, Params: m.Params}
		want, wantErr := readParams(req, memberName)
		req.Plain = m.Plain
		got, gotErr := readParams(req, memberName)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || (gotErr != nil) != odd {
			t.Errorf("readParams(%s) = %q, %v, want %q, %v, an error: %v", params, got, gotErr, want, wantErr, odd)
		}
	}
}

// BenchmarkReadParams reads the params of a call: from their text, and as they were parsed.
func BenchmarkReadParams(b *testing.B) {
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"server7__read_file","arguments":{"path":"/srv/notes/today.md","lines":100},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`), wire.Options{UniqueParams: true})
	if err != nil {
		b.Fatal(err)
	}
	for name, plain := range map[string]wire.Plain{"text": {}, "parsed": m.Plain} {
		b.Run(name, func(b *testing.B) {
			req := &mcp.Request{Method: spec.MethodToolsCall, Params: m.Params, Plain: plain}
			b.ReportAllocs()
			for b.Loop() {
				p, err := readParams(req, memberName)
				if err != nil || new(sealing).ownTasks(p.meta, "") != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
