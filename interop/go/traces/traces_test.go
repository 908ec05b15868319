package traces

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A modern client calls a tool of a legacy server, which asks a question: the call is
// parked, and the client's retry is a span of its own, linked to the call.
func TestModernClientLegacyServer(t *testing.T) {
	at := newCollector(t)
	b := newBridge(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+at.http, "OTEL_SERVICE_NAME=bridge-under-test")
	c := &client{t: t, url: b.base + "/mcp/legacy"}
	const params = `"name":"ask","arguments":{"nonce":"n1"}`
	text := c.modern(`"a"`, params, inMeta)
	var asked struct {
		Result struct {
			ResultType    string
			RequestState  string
			InputRequests map[string]struct{ Method string }
		}
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil || asked.Result.ResultType != "input_required" {
		t.Fatalf("the call got %s, %v", text, err)
	}
	key := slices.Collect(maps.Keys(asked.Result.InputRequests))[0]
	text = c.modern(`"b"`, fmt.Sprintf(`%s,"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"nonce":"n1"}}}`, params, asked.Result.RequestState, key), inMeta)
	if !strings.Contains(text, `"resultType":"complete"`) {
		t.Fatalf("the retry got %s", text)
	}
	b.end(t)

	all := at.spans(t, 3)
	served, sent := find(all, "Server", "tools/call ask"), find(all, "Client", "tools/call ask")
	if len(served) != 2 || len(sent) != 1 {
		t.Fatalf("%d server and %d client spans, want 2 and 1:\n%s", len(served), len(sent), at.Log())
	}
	call, retry, exchange := served[0], served[1], sent[0]
	common := map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "ask", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2026-07-28",
		"network.transport": "tcp", "network.protocol.name": "http", "mcpbridge.server": "legacy", "mcpbridge.era": "modern", "mcpbridge.client": "ide/3",
	}
	call.is(t, "call", clientSpan, common)
	call.is(t, "call", clientSpan, map[string]string{"jsonrpc.request.id": "a", "mcpbridge.outcome": "input_required"})
	retry.is(t, "retry", clientSpan, common)
	retry.is(t, "retry", clientSpan, map[string]string{"jsonrpc.request.id": "b", "mcpbridge.outcome": "ok"})
	exchange.is(t, "request to the server", call.id, map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "ask", "mcp.protocol.version": "2025-11-25", "mcpbridge.era": "legacy", "server.address": "127.0.0.1",
	})
	if want := []string{"mcpbridge.session_opened", "mcpbridge.input_required elicitation/create", "mcpbridge.parked"}; !slices.Equal(call.events, want) {
		t.Errorf("events of the call %q, want %q", call.events, want)
	}
	if want := []string{"mcpbridge.resumed", "mcpbridge.input_answered elicitation/create"}; !slices.Equal(retry.events, want) {
		t.Errorf("events of the retry %q, want %q", retry.events, want)
	}
	if !slices.Equal(call.links, []string{proxySpan}) || !slices.Contains(retry.links, call.id) {
		t.Errorf("links: the call has %q, want the context of the HTTP request; the retry %q, want the call too", call.links, retry.links)
	}
	if !strings.Contains(at.Log(), "service.name: Str(bridge-under-test)") {
		t.Error("the resource has another service.name")
	}
	b.legacy.got(t, exchange)
	at.own(t, "legacy", "server/discover", "initialize")
	at.own(t, "modern", "server/discover")
}

// A legacy client calls a tool of a modern server, which requires input: both requests to
// the server are children of the call, and the second one is linked to the first.
func TestLegacyClientModernServer(t *testing.T) {
	at := newCollector(t)
	b := newBridge(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+at.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_SAMPLER=parentbased_always_off")
	c := &client{t: t, url: b.base + "/mcp/modern"}
	c.initialize() // is in no trace: the sampler leaves it out
	res := c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"nonce":"n2"},"_meta":{` + inMeta + `}}}`)
	defer res.Body.Close()
	next := messages(t, res)
	var question struct {
		ID     int
		Method string
	}
	if text := next(); json.Unmarshal([]byte(text), &question) != nil || question.Method != "elicitation/create" {
		t.Fatalf("the call got %s", text)
	}
	c.notify(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"nonce":"n2"}}}`, question.ID))
	if text := next(); !strings.Contains(text, `"result"`) {
		t.Fatalf("the call got %s", text)
	}
	b.end(t)

	all := at.spans(t, 3)
	served, sent := find(all, "Server", "tools/call ask"), find(all, "Client", "tools/call ask")
	if len(served) != 1 || len(sent) != 2 {
		t.Fatalf("%d server and %d client spans, want 1 and 2:\n%s", len(served), len(sent), at.Log())
	}
	call := served[0]
	call.is(t, "call", clientSpan, map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "ask", "mcp.protocol.version": "2025-11-25", "jsonrpc.request.id": "2",
		"mcpbridge.era": "legacy", "mcpbridge.server": "modern", "mcpbridge.outcome": "ok",
	})
	if call.attributes["mcp.session.id"] == "" || call.attributes["mcp.session.id"] == c.session {
		t.Errorf("mcp.session.id is %q: want a name that grants no access", call.attributes["mcp.session.id"])
	}
	for _, s := range sent {
		s.is(t, "request to the server", call.id, map[string]string{"mcp.protocol.version": "2026-07-28", "mcpbridge.era": "modern", "mcp.method.name": "tools/call"})
	}
	if !slices.Equal(sent[1].links, []string{sent[0].id}) || len(sent[0].links) != 0 {
		t.Errorf("links: %q and %q, want the second request to be linked to the first, %s", sent[0].links, sent[1].links, sent[0].id)
	}
	if want := []string{"mcpbridge.input_required elicitation/create", "mcpbridge.input_answered elicitation/create"}; !slices.Equal(call.events, want) {
		t.Errorf("events %q, want %q", call.events, want)
	}
	b.modern.got(t, sent...)
}

// got checks that the server got the contexts of the spans, in _meta and in the headers.
func (w *watched) got(t *testing.T, spans ...*span) {
	t.Helper()
	bodies, heads := w.calls()
	if len(bodies) != len(spans) {
		t.Fatalf("the server got %d calls, want %d: %q", len(bodies), len(spans), bodies)
	}
	for i, s := range spans {
		want := "00-" + clientTrace + "-" + s.id + "-01"
		for _, member := range []string{`"traceparent":"` + want + `"`, `"tracestate":"vendor=1"`, `"baggage":"tenant=7"`} {
			if strings.Count(bodies[i], member) != 1 {
				t.Errorf("the server got %s, want %s once", bodies[i], member)
			}
		}
		if strings.Contains(bodies[i], clientSpan) {
			t.Errorf("the server got the client's context: %s", bodies[i])
		}
		if h := heads[i]; h.Get("Traceparent") != want || h.Get("Tracestate") != "vendor=1" || h.Get("Baggage") != "tenant=7" {
			t.Errorf("the server got the headers %v, want the context of %s", h, want)
		}
	}
}
