package back

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

func TestM2L06Params(t *testing.T) {
	const envelope = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"`
	for _, tt := range []struct {
		name, in string
		token    int64
		want     string
	}{
		{"nothing", ``, 0, ``},
		{"nothing but progress", ``, 3, `{"_meta":{"progressToken":3}}`},
		{"envelope alone", `{"_meta":{` + envelope + `}}`, 0, `{}`},
		{"emptied by us", `{"name":"x","_meta":{` + envelope + `,"progressToken":"p"}}`, 0, `{"name":"x"}`},
		{"empty before", `{"_meta":{},"name":"x"}`, 0, `{"_meta":{},"name":"x"}`},
		{"trace context and extensions stay", `{"_meta":{` + envelope + `,"traceparent":"00-1","tracestate":"a=1","baggage":"b","e.x/y":{"z": 1.0}}}`, 0,
			`{"_meta":{"traceparent":"00-1","tracestate":"a=1","baggage":"b","e.x/y":{"z": 1.0}}}`},
		{"token replaced in place", `{"_meta":{"progressToken":0,"a":1}}`, 12, `{"_meta":{"progressToken":12,"a":1}}`},
		{"rounds and tasks", `{"name":"x","inputResponses":{"a":{}},"requestState":"s","task":{"ttl":1},"arguments":{"task":1,"requestState":2,"inputResponses":3}}`, 0,
			`{"name":"x","arguments":{"task":1,"requestState":2,"inputResponses":3}}`},
		{"every digit and byte", `{"arguments":{"n":9007199254740993,"f":1.0e+00,"s":"\u00e9 \/","_meta":{"io.modelcontextprotocol/logLevel":1}},"unknown":null}`, 0,
			`{"arguments":{"n":9007199254740993,"f":1.0e+00,"s":"\u00e9 \/","_meta":{"io.modelcontextprotocol/logLevel":1}},"unknown":null}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var in json.RawMessage
			if tt.in != "" {
				in = json.RawMessage(tt.in)
			}
			if got := string(link.Params(nil, in, tt.token, nil)); got != tt.want {
				t.Errorf("link.Params(%s, %d) = %s, want %s", tt.in, tt.token, got, tt.want)
			}
		})
	}
}

func TestM2L06Headers(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"content":[]}`)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Headers: http.Header{
		"Authorization": {"Bearer configured"},
		"Accept":        {"*/*"},
		"Mcp-Method":    {"x"},
		"Host":          {"evil.example"},
	}}})
	req := ask("tools/call", `{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`)
	req.Extra = []byte(`"vendor":{"a":1}`)
	if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	call := p.Requests("tools/call")[0]
	if want := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"},"vendor":{"a":1}}`; call.Body != want {
		t.Errorf("body = %s, want %s", call.Body, want)
	}
	for name, want := range map[string]string{
		"Accept":               "application/json, text/event-stream",
		"Content-Type":         "application/json",
		"Mcp-Protocol-Version": "2025-11-25",
		"Mcp-Session-Id":       "sess-1",
		"Authorization":        "Bearer configured",
		"Mcp-Method":           "",
		"Mcp-Name":             "",
		"Origin":               "",
		"Last-Event-Id":        "",
	} {
		if got := strings.Join(call.Header.Values(name), "|"); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if want := strings.TrimPrefix(p.URL, "http://"); call.Host != want {
		t.Errorf("Host = %q, want %q", call.Host, want)
	}
	first := p.Requests("initialize")[0]
	if v := first.Header.Values("Mcp-Protocol-Version"); len(v) > 0 {
		t.Errorf("initialize carried MCP-Protocol-Version %q", v)
	}
	if v := p.Requests("notifications/initialized")[0].Header.Get("Mcp-Session-Id"); v != "sess-1" {
		t.Errorf("notifications/initialized carried session %q", v)
	}
}

func TestM2L07Capabilities(t *testing.T) {
	const declared = `{"tools":{"listChanged":true},"tasks":{"list":{}},"experimental":{"a":{"x":1.0},"io.modelcontextprotocol/tasks":{},"hidden/e":{}},"extensions":{"e/y":{"n": 1},"hidden/e":{}},"x-unknown":[1]}`
	const want = `{"tools":{"listChanged":true},"experimental":{"a":{"x":1.0}},"extensions":{"e/y":{"n": 1}},"x-unknown":[1]}`
	if got := string(crossing([]byte(declared), []string{"hidden/e"})); got != want {
		t.Errorf("describable = %s, want %s", got, want)
	}
	if got := string(crossing([]byte(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`), nil)); got != `{}` {
		t.Errorf("describable of tasks alone = %s, want {}", got)
	}
	const client = `{"extensions":{"io.modelcontextprotocol/tasks":{},"e/y":{"n": 1},"hidden/e":{}},"experimental":{}}`
	if got, want := string(declaredTo([]byte(client), &Options{Options: upstream.Options{Settings: settings.Server{Extensions: settings.Extensions{Hide: []string{"hidden/e"}}}}})), `{"extensions":{"e/y":{"n": 1}},"experimental":{}}`; got != want {
		t.Errorf("declaredTo = %s, want %s", got, want)
	}
}

func TestM2L10Errors(t *testing.T) {
	for _, tt := range []struct {
		name, method, params, in string
		declared                 string
		want                     string
		refusal                  bool
	}{
		{
			name: "resource not found, uri told", method: "resources/read", params: `{"uri":"a:b"}`,
			in:   `{"code":-32002,"message":"gone","data":{"uri":"a:c","x":1}}`,
			want: `-32602 gone {"uri":"a:c","x":1}`,
		},
		{
			name: "resource not found, uri added", method: "resources/read", params: `{"uri":"a:b"}`,
			in: `{"code":-32002,"message":"gone"}`, want: `-32602 gone {"uri":"a:b"}`,
		},
		{
			name: "resource not found, uri added to data", method: "resources/read", params: `{"uri":"a:b"}`,
			in: `{"code":-32002,"message":"gone","data":{"x":1}}`, want: `-32602 gone {"x":1,"uri":"a:b"}`,
		},
		{
			name: "resource not found, data of another type", method: "resources/read", params: `{"uri":"a:b"}`,
			in: `{"code":-32002,"message":"gone","data":[1]}`, want: `-32602 gone {"uri":"a:b","data":[1]}`,
		},
		{name: "reserved, first", method: "tools/call", in: `{"code":-32020,"message":"m","data":{"a":1}}`, want: `-32603 m {"code":-32020,"data":{"a":1}}`},
		{name: "reserved, last", method: "tools/call", in: `{"code":-32099,"message":"m"}`, want: `-32603 m {"code":-32099}`},
		{name: "URL elicitation", method: "tools/list", in: `{"code":-32042,"message":"m","data":{"elicitations":[]}}`, want: `-32603 m {"code":-32042,"data":{"elicitations":[]}}`},
		{name: "beside the range", method: "tools/call", in: `{"code":-32019,"message":"m","data":2}`, want: `-32019 m 2`},
		{name: "beside the range, below", method: "tools/call", in: `{"code":-32100,"message":"m"}`, want: `-32100 m `},
		{name: "code of zero", method: "tools/call", in: `{"code":0,"message":"m"}`, want: `0 m `},
		{name: "invalid params", method: "tools/call", in: `{"code":-32602,"message":"m"}`, want: `-32602 m `},
		{name: "F-04 not found though declared", method: "prompts/get", in: `{"code":-32601,"message":"m"}`, want: `-32601 m `},
		{name: "F-04 not found, not declared", method: "prompts/get", declared: `{"tools":{}}`, in: `{"code":-32601,"message":"m"}`, want: `-32601 m `, refusal: true},
		{name: "F-04 not found, no method of the specification", method: "x/y", in: `{"code":-32601,"message":"m"}`, want: `-32601 m `, refusal: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			if tt.declared != "" {
				p.Capabilities = tt.declared
			}
			p.On[tt.method] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, tt.in)
			}
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			_, err := b.Serve(t.Context(), ask(tt.method, tt.params), &backtest.Caller{})
			var we *wire.Error
			if !errors.As(err, &we) {
				t.Fatalf("Serve = %v, want a wire error", err)
			}
			if got := fmt.Sprintf("%d %s %s", we.Code, we.Message, we.Data); got != tt.want {
				t.Errorf("Serve = %s, want %s", got, tt.want)
			}
			var refusal *mcp.Refusal
			if errors.As(err, &refusal) != tt.refusal {
				t.Errorf("refusal = %v, want %v", !tt.refusal, tt.refusal)
			}
		})
	}
}

// A status that is no answer becomes an error which says what to do.
func TestM2L10TransportFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   []string
	}{
		{"unauthorized", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, []string{"HTTP 401", "credentials"}},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}, []string{"HTTP 307", "redirects are not followed"}},
		{"bad gateway page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(502)
			fmt.Fprint(w, "<html>secret-internals</html>")
		}, []string{"HTTP 502"}},
		{"a web page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>")
		}, []string{"text/html"}},
		{"broken JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		}, []string{"can't be read"}},
		{"F-07 duplicate members", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":2,"id":2,"result":{}}`)
		}, []string{"can't be read", "duplicate"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, _ wire.Message) { tt.answer(w, r) }
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			_, err := b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{})
			we := mcp.WireError(err)
			if err == nil || we.Code != -32603 {
				t.Fatalf("Serve = %v, want -32603", err)
			}
			for _, part := range append(tt.want, `server "scripted"`) {
				if !strings.Contains(we.Message, part) {
					t.Errorf("Serve = %q, want it to say %q", we.Message, part)
				}
			}
			if strings.Contains(we.Message, "secret-internals") || strings.Contains(we.Message, p.URL) {
				t.Errorf("Serve = %q: too much is told", we.Message)
			}
		})
	}
}

// The result crosses as the bytes it is, numbers and unknown members included.
func TestF07ResultBytes(t *testing.T) {
	const result = `{"content":[{"type":"text","text":"\u00e9\/"}],"structuredContent":{"n":9007199254740993,"f":1.0E+2},"x":null , "_meta":{ }}`
	p := legacytest.NewHTTPServer(t)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, ` {"vendor":1,"result":%s,"id":%s,"jsonrpc":"2.0"}`, result, m.ID)
	}
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.StartSSE(w)(`{"vendor":1,"result":%s,"id":%s,"jsonrpc":"2.0"}`, result, m.ID)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Settings: settings.Server{Cache: map[string]settings.CacheHint{"tools/list": {TTL: 5 * time.Millisecond, Scope: "public"}}}}})
	for _, method := range []string{"tools/call", "tools/list"} {
		res, err := b.Serve(t.Context(), ask(method, `{}`), &backtest.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Body) != result || string(res.Extra) != `"vendor":1` {
			t.Errorf("Serve(%s) = %s with %s, want %s", method, res.Body, res.Extra, result)
		}
		if want := (mcp.CacheHint{}); method == "tools/call" && res.Cache != want {
			t.Errorf("Cache of %s = %+v, want %+v", method, res.Cache, want)
		}
		if want := (mcp.CacheHint{TTL: 5, Public: true}); method == "tools/list" && res.Cache != want {
			t.Errorf("Cache of %s = %+v, want %+v", method, res.Cache, want)
		}
		res.Release()
	}
}

// What an error says stays what it was when the buffer it came in is used again.
func TestErrorDataIsTheCallers(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		name, _ := wire.GetString(m.Params, "name")
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"m","data":"%s"}}`, m.ID, strings.Repeat(name, 100))
		if name == "b" {
			legacytest.StartSSE(w)("%s", text)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, text)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	var errs []*wire.Error
	for i := range 60 { // a pool gives no promise when it reuses
		_, err := b.Serve(t.Context(), ask("tools/call", `{"name":"`+string(rune('a'+i%3))+`"}`), &backtest.Caller{})
		var we *wire.Error
		if !errors.As(err, &we) {
			t.Fatal(err)
		}
		errs = append(errs, we)
	}
	for i, e := range errs {
		if want := `"` + strings.Repeat(string(rune('a'+i%3)), 100) + `"`; string(e.Data) != want {
			t.Fatalf("error %d has data %.20s…, want %.20s…", i, e.Data, want)
		}
	}
}
