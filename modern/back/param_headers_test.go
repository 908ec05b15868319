package back

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
)

// Headers of parameters that can't be judged here pass; all others are computed from
// the body, whatever the client's are.
func TestS01UnverifiedParamHeadersPass(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", said("hi"))
	f, _ := before(t, p.back(Options{}))
	call := moderntest.Request("1", "tools/call", "{}", `,"name":"x","arguments":{"region":"eu"}`)
	headers := map[string]string{"Mcp-Param-Region": "us", "Mcp-Param-Odd": "=?base64?4pyT?=", "Mcp-Other": "x", "X-Own": "y"}
	if w := moderntest.OverHTTP(t, f, call, headers); w.Code != 200 {
		t.Fatalf("answer = %d %s, want 200", w.Code, w.Body)
	}
	got := p.requests("tools/call")[0].header
	for name, want := range map[string]string{"Mcp-Param-Region": "us", "Mcp-Param-Odd": "=?base64?4pyT?=", "Mcp-Other": "", "X-Own": "", "Mcp-Name": "x"} {
		if got.Get(name) != want {
			t.Errorf("the server got %s: %q, want %q", name, got.Get(name), want)
		}
	}
	// What is known is computed from the arguments.
	const tools = `[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]`
	p.says("tools/list", `{"resultType":"complete","tools":`+tools+`}`)
	if w := moderntest.OverHTTP(t, f, moderntest.Request("2", "tools/list", "{}", ""), nil); w.Code != 200 {
		t.Fatalf("list = %d %s, want 200", w.Code, w.Body)
	}
	headers["Mcp-Param-Region"] = "eu"
	if w := moderntest.OverHTTP(t, f, call, headers); w.Code != 200 {
		t.Fatalf("answer = %d %s, want 200", w.Code, w.Body)
	}
	if got := p.requests("tools/call")[1].header; got.Get("Mcp-Param-Odd") != "" {
		t.Errorf("the server got %v, want no header that the tool has not", got)
	}
}

// What the server's tool has in headers is computed here, though the front does not know the tool yet; a
// header that nobody knows passes as often as it came.
func TestS01KnownParamHeadersAreSentOnce(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/list", toolPage(regionTool))
	p.says("tools/call", said("hi"))
	b := p.back(Options{})
	if _, err := upBody(b.Serve(t.Context(), upRequest("tools/list", ""), &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	call := upRequest("tools/call", `{"name":"query","arguments":{"region":"eu","deep":{"n":42}}}`)
	call.ParamHeaders = map[string][]string{"Mcp-Param-Region": {"us"}, "Mcp-Param-Odd": {"a", "b"}, "Mcp-Name": {"other"}}
	if _, err := upBody(b.Serve(t.Context(), call, &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	got := p.requests("tools/call")[0].header
	for name, want := range map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-N": "42", "Mcp-Param-Odd": "a|b", "Mcp-Name": "query"} {
		if sent := strings.Join(got[name], "|"); sent != want {
			t.Errorf("the server got %s: %q, want %q", name, sent, want)
		}
	}
}
