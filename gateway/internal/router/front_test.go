package router

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// cell is one malformed or borderline request with what it must get.
type cell struct {
	name   string
	method string // HTTP; empty for POST
	body   string
	header func(http.Header)
	status int
	code   int64
	id     string // in the error's body; empty for null
	text   string // in the message
}

func TestFrontRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.bound("body", 4096); o.bound("depth", 20) })
	good := modernBody("1", "tools/list", "")
	call := modernBody(`"c"`, "tools/call", `"name":"echo","arguments":{}`)
	set := func(k, v string) func(http.Header) { return func(h http.Header) { h.Set(k, v) } }
	del := func(k string) func(http.Header) { return func(h http.Header) { h.Del(k) } }
	legacy := func(h http.Header) { h.Del("Mcp-Protocol-Version"); h.Del("Mcp-Method") }
	swap := func(body, from, to string) string {
		out := strings.Replace(body, from, to, 1)
		if out == body {
			t.Fatalf("%s is not in %s", from, body)
		}
		return out
	}
	toCall := func(h http.Header) { h.Set("Mcp-Method", "tools/call"); h.Set("Mcp-Name", "echo") }
	caps := `"io.modelcontextprotocol/clientCapabilities":{},`
	for _, c := range []cell{
		{"F-01 legacy request without session", "", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, legacy, 400, -32600, "3", "Mcp-Session-Id"},
		{"F-01 modern header without envelope", "", `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}`, nil, 400, -32602, "3", "protocolVersion"},
		{"F-01 initialize with a later modern header", "", `{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}`, set("Mcp-Protocol-Version", "2099-01-01"), 400, -32020, "3", "server/discover"},
		{"F-01 envelope names a legacy revision", "", swap(good, "2026-07-28", "2025-11-25"), set("Mcp-Protocol-Version", "2025-11-25"), 400, -32022, "1", "2025-11-25"},
		{"F-01 header of no known revision", "", good, set("Mcp-Protocol-Version", "2025-11-26"), 400, -32020, "1", "2025-11-26"},
		{"F-01 header of a later revision", "", good, set("Mcp-Protocol-Version", "2027-01-01"), 400, -32020, "1", "2027-01-01"},

		{"F-02 no version header", "", good, del("Mcp-Protocol-Version"), 400, -32020, "1", "Mcp-Protocol-Version is missing"},
		{"F-02 no method header", "", good, del("Mcp-Method"), 400, -32020, "1", "Mcp-Method is missing"},
		{"F-02 other method", "", good, set("Mcp-Method", "tools/call"), 400, -32020, "1", "tools/list"},
		{"F-02 method in another case", "", good, set("Mcp-Method", "Tools/List"), 400, -32020, "1", "Tools/List"},
		{"F-02 method doubled", "", good, func(h http.Header) { h.Add("Mcp-Method", "tools/list") }, 400, -32020, "1", "2 times"},
		{"F-02 method twice in one line", "", good, set("Mcp-Method", "tools/list, tools/list"), 400, -32020, "1", "tools/list, tools/list"},
		{"F-02 no name header", "", call, set("Mcp-Method", "tools/call"), 400, -32020, `"c"`, "Mcp-Name is missing"},
		{"F-02 other name", "", call, func(h http.Header) { toCall(h); h.Set("Mcp-Name", "ECHO") }, 400, -32020, `"c"`, "ECHO"},
		{"F-02 name encoded badly", "", call, func(h http.Header) { toCall(h); h.Set("Mcp-Name", "=?base64?*?=") }, 400, -32020, `"c"`, "Mcp-Name"},
		{"F-02 name encoded, other", "", call, func(h http.Header) { toCall(h); h.Set("Mcp-Name", "=?base64?eA==?=") }, 400, -32020, `"c"`, "Mcp-Name"},
		{"F-02 no name in the body", "", swap(call, `"name":"echo",`, ``), toCall, 400, -32602, `"c"`, "params.name"},
		{"F-02 no uri in the body", "", modernBody("1", "resources/read", ""), func(h http.Header) { h.Set("Mcp-Method", "resources/read"); h.Set("Mcp-Name", "x") }, 400, -32602, "1", "params.uri"},

		{"F-03 no capabilities", "", swap(good, caps, ""), nil, 400, -32602, "1", "clientCapabilities"},
		{"F-03 capabilities no object", "", swap(good, caps, strings.Replace(caps, "{}", "true", 1)), nil, 400, -32602, "1", "clientCapabilities"},
		{"F-03 unknown revision", "", swap(good, "2026-07-28", "2027-01-01"), set("Mcp-Protocol-Version", "2027-01-01"), 400, -32022, "1", "2027-01-01"},
		{"F-03 revision no date", "", swap(good, "2026-07-28", "latest"), set("Mcp-Protocol-Version", "latest"), 400, -32022, "1", "latest"},
		{"F-03 revision a number", "", swap(good, `"2026-07-28"`, "20260728"), nil, 400, -32602, "1", "protocolVersion"},
		{"F-03 unknown log level", "", swap(good, caps, caps+`"io.modelcontextprotocol/logLevel":"loud",`), nil, 400, -32602, "1", "loud"},
		{"F-03 client info no object", "", swap(good, `{"name":"c","version":"0"}`, `"c"`), nil, 400, -32602, "1", "clientInfo"},
		{"F-03 progress token an object", "", swap(good, caps, caps+`"progressToken":{},`), nil, 400, -32602, "1", "progressToken"},

		{"F-04 ping", "", modernBody("1", "ping", ""), set("Mcp-Method", "ping"), 404, -32601, "1", "ping"},
		{"F-04 initialize with an envelope", "", modernBody("1", "initialize", ""), set("Mcp-Method", "initialize"), 404, -32601, "1", "initialize"},
		{"F-04 logging/setLevel", "", modernBody("1", "logging/setLevel", ""), set("Mcp-Method", "logging/setLevel"), 404, -32601, "1", "setLevel"},
		{"F-04 resources/subscribe", "", modernBody("1", "resources/subscribe", ""), set("Mcp-Method", "resources/subscribe"), 404, -32601, "1", "subscribe"},
		{"F-04 resources/unsubscribe", "", modernBody("1", "resources/unsubscribe", ""), set("Mcp-Method", "resources/unsubscribe"), 404, -32601, "1", "unsubscribe"},
		{"F-04 tasks/get", "", modernBody("1", "tasks/get", ""), set("Mcp-Method", "tasks/get"), 404, -32601, "1", "tasks/get"},

		{"F-05 response with a modern header", "", `{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 400, -32600, "", "inputResponses"},
		{"F-05 response without", "", `{"jsonrpc":"2.0","id":1,"result":{}}`, legacy, 400, -32600, "", "Mcp-Session-Id"},
		{"F-05 batch with a modern header", "", "[" + good + "]", nil, 400, -32600, "", "batch"},
		{"F-05 batch with a modern member", "", `[{"jsonrpc":"2.0","id":1,"method":"ping"},` + good + "]", legacy, 400, -32600, "", "batch"},
		{"F-05 legacy batch without session", "", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, legacy, 400, -32600, "", "Mcp-Session-Id"},

		{"F-06 GET with a modern header", "GET", "", nil, 405, -32600, "", "GET"},
		{"F-06 DELETE with a modern header", "DELETE", "", nil, 405, -32600, "", "DELETE"},
		{"F-06 PUT", "PUT", "", legacy, 405, -32600, "", "PUT"},
		{"F-06 GET without session", "GET", "", legacy, 400, -32600, "", "Mcp-Session-Id"},
		{"F-06 GET with an unknown session", "GET", "", func(h http.Header) { legacy(h); h.Set("Mcp-Session-Id", "x") }, 404, -32001, "", "session"},
		{"F-06 DELETE with an unknown session", "DELETE", "", func(h http.Header) { legacy(h); h.Set("Mcp-Session-Id", "x") }, 404, -32001, "", "session"},

		{"F-07 no JSON", "", "hello", nil, 400, -32700, "", "byte 0"},
		{"F-07 empty", "", "", nil, 400, -32700, "", "byte 0"},
		{"F-07 trailing bytes", "", good + "x", nil, 400, -32700, "", "after the value"},
		{"F-07 invalid UTF-8", "", swap(good, `"c"`, "\"\xff\""), nil, 400, -32700, "", "UTF-8"},
		{"F-07 too deep", "", swap(good, caps, caps+`"x":`+strings.Repeat("[", 30)+strings.Repeat("]", 30)+","), nil, 400, -32700, "", "deeply"},
		{"F-07 too large", "", swap(good, `"c"`, `"`+strings.Repeat("c", 5000)+`"`), nil, 413, -32600, "", "4096 bytes"},
		{"F-07 duplicate in the envelope", "", swap(good, `"id":1`, `"id":1,"id":2`), nil, 400, -32600, "", "duplicate member"},
		{"F-07 duplicate in params", "", swap(call, `"arguments":{}`, `"arguments":{},"name":"x"`), toCall, 400, -32600, `"c"`, "duplicate member"},
		{"F-07 duplicate in _meta", "", swap(good, caps, caps+caps), nil, 400, -32600, "1", "duplicate member"},
		{"F-07 id null", "", swap(good, `"id":1`, `"id":null`), nil, 400, -32600, "", "id"},
		{"F-07 id true", "", swap(good, `"id":1`, `"id":true`), nil, 400, -32600, "", "id"},
		{"F-07 id array", "", swap(good, `"id":1`, `"id":[1]`), nil, 400, -32600, "", "id"},
		{"F-07 member name in another case", "", swap(good, `"method"`, `"Method"`), nil, 400, -32600, "1", "neither method"},
		{"F-07 no version", "", swap(good, `"jsonrpc":"2.0",`, ``), nil, 400, -32600, "1", "jsonrpc"},
		{"F-07 params an array", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, nil, 400, -32600, "1", "params"},

		{"F-08 foreign Origin", "", good, set("Origin", "https://evil.example"), 403, -32600, "", "evil.example"},
		{"F-08 Origin null", "", good, set("Origin", "null"), 403, -32600, "", "null"},
		{"F-08 Origin with user information", "", good, set("Origin", "http://u:p@localhost:1"), 403, -32600, "", "localhost"},
		{"F-08 foreign Host", "", good, set("Host", "evil.example"), 403, -32600, "", "evil.example"},
		{"F-08 text/plain", "", good, set("Content-Type", "text/plain"), 415, -32600, "", "application/json"},
		{"F-08 no Content-Type", "", good, del("Content-Type"), 415, -32600, "", "application/json"},
		{"F-08 Accept takes nothing", "", good, set("Accept", "text/html"), 406, -32600, "1", "Accept"},
		{"F-08 listen without a stream", "", modernBody("1", "subscriptions/listen", `"notifications":{}`), func(h http.Header) { h.Set("Mcp-Method", "subscriptions/listen"); h.Set("Accept", "application/json") }, 406, -32600, "1", "Accept"},
		{"F-08 listen without filter", "", modernBody("1", "subscriptions/listen", ""), set("Mcp-Method", "subscriptions/listen"), 400, -32602, "1", "notifications"},
		{"F-08 listen with a bad flag", "", modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":1}`), set("Mcp-Method", "subscriptions/listen"), 400, -32602, "1", "toolsListChanged"},
		{"F-08 listen with a bad URI", "", modernBody("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":[1]}`), set("Mcp-Method", "subscriptions/listen"), 400, -32602, "1", "resourceSubscriptions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := modernHeaders("tools/list", "")
			if c.header != nil {
				c.header(h)
			}
			method := c.method
			if method == "" {
				method = http.MethodPost
			}
			got := r.send(t, method, c.body, h)
			if got.status != c.status || got.code() != c.code {
				t.Errorf("%d %s, want %d, code %d", got.status, got.body, c.status, c.code)
			}
			if typ := got.header.Get("Content-Type"); typ != "application/json" {
				t.Errorf("Content-Type = %q, want application/json", typ)
			}
			id := c.id
			if id == "" {
				id = "null"
			}
			if !strings.Contains(got.body, `"id":`+id+`,`) || !strings.Contains(got.body, c.text) {
				t.Errorf("body = %s, want id %s and %q in the message", got.body, id, c.text)
			}
			if allow := map[bool]string{true: "GET, POST, DELETE", false: "POST"}[method == "PUT"]; c.status == 405 && got.header.Get("Allow") != allow {
				t.Errorf("Allow = %q, want %s", got.header.Get("Allow"), allow)
			}
			if c.code == -32022 && !strings.Contains(got.body, `"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":`) {
				t.Errorf("body = %s, want data with supported and requested", got.body)
			}
			if n := len(r.peer.sent("tools/call")) + len(r.peer.sent("tools/list")); n != 0 {
				t.Errorf("%d refused requests reached the server", n)
			}
		})
	}
}

func TestFrontAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.answer("tools/list", `{"tools":[]}`)
	r.peer.answer("tools/call", `{"content":[{"type":"text","text":"hi"}]}`)
	for _, tt := range []struct {
		name, method, tool string
		header             func(http.Header)
	}{
		{"F-01 modern by envelope", "tools/list", "", nil},
		{"F-02 name in base64", "tools/call", "été", func(h http.Header) { h.Set("Mcp-Name", "=?base64?w6l0w6k=?=") }},
		{"F-02 name in raw UTF-8", "tools/call", "été", func(h http.Header) { h.Set("Mcp-Name", "été") }},
		{"F-02 name that looks encoded", "tools/call", "=?base64?eA==?=", func(h http.Header) { h.Set("Mcp-Name", "=?base64?PT9iYXNlNjQ/ZUE9PT89?=") }},
		{"F-05 session header ignored", "tools/list", "", func(h http.Header) { h.Set("Mcp-Session-Id", "nope") }},
		{"F-05 Last-Event-ID ignored", "tools/list", "", func(h http.Header) { h.Set("Last-Event-Id", "9") }},
		{"F-08 loopback Origin", "tools/list", "", func(h http.Header) { h.Set("Origin", "http://localhost:6274") }},
		{"F-08 Content-Type with charset", "tools/list", "", func(h http.Header) { h.Set("Content-Type", "application/json; charset=utf-8") }},
		{"F-08 Accept anything", "tools/list", "", func(h http.Header) { h.Set("Accept", "*/*") }},
		{"F-08 no Accept", "tools/list", "", func(h http.Header) { h.Del("Accept") }},
		{"F-08 Accept JSON alone", "tools/list", "", func(h http.Header) { h.Set("Accept", "application/json") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := modernHeaders(tt.method, tt.tool)
			if tt.header != nil {
				tt.header(h)
			}
			rest := ""
			if tt.tool != "" {
				rest = fmt.Sprintf(`"name":%q,"arguments":{}`, tt.tool)
			}
			got := r.send(t, http.MethodPost, modernBody("1", tt.method, rest), h)
			if got.status != 200 || !strings.Contains(got.body, `"id":1,"result":{`) {
				t.Errorf("%d %s, want 200 and a result", got.status, got.body)
			}
			if typ := got.header.Get("Content-Type"); typ != "application/json" {
				t.Errorf("Content-Type = %q, want application/json: nothing preceded the result", typ)
			}
			if s := got.header.Get("Mcp-Session-Id"); s != "" {
				t.Errorf("Mcp-Session-Id = %q, want none", s)
			}
		})
	}
}

// A page of another origin, and one whose name was rebound to this machine, learn
// nothing wherever they ask, the names of servers included.
func TestF08OriginComesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		other := o.Servers[0]
		other.Name = "other"
		o.Servers = append(o.Servers, other)
	})
	for _, path := range []string{"/", "/mcp", "/mcp/peer", "/mcp/unknown", "/sse", "/sse/unknown", "/message", "/elsewhere"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
			foreign := r.sendTo(t, method, path, "", "", http.Header{"Origin": {"https://evil.example"}})
			rebound := r.sendTo(t, method, path, "", "evil.example", http.Header{})
			for name, got := range map[string]answer{"Origin": foreign, "Host": rebound} {
				if got.status != http.StatusForbidden || strings.Contains(got.body, "other") || got.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s %s with a foreign %s = %d %s, want 403 and no names", method, path, name, got.status, got.body)
				}
			}
		}
	}
}
