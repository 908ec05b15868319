package record

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`

// exchange is a POST with headers, NAME: VALUE each, and its answer. An answer that begins with data:
// is a stream.
func exchange(body, answer string, headers ...string) Exchange {
	e := Exchange{Method: http.MethodPost, Asked: http.Header{"Accept": {"application/json, text/event-stream"}}, Body: []byte(body), Status: 200, Said: http.Header{}, Answer: []byte(answer)}
	if strings.HasPrefix(answer, "data:") {
		e.Said.Set("Content-Type", "text/event-stream")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		e.Asked.Set(name, value)
	}
	return e
}

func TestByClients(t *testing.T) {
	opened := exchange(`{"id":1,"method":"initialize"}`, `{"id":1,"result":{"protocolVersion":"2025-06-18"}}`)
	opened.Said.Set("Mcp-Session-Id", "S")
	refused := exchange(`{"id":2,"method":"ping"}`, "", "Mcp-Session-Id: S", "Mcp-Protocol-Version: 2025-11-25")
	refused.Status = 400
	for _, tt := range []struct {
		name string
		e    Exchange
		want string // empty for none
	}{
		{"nothing", exchange(`{"id":2,"method":"ping"}`, "", "Mcp-Session-Id: S", "Mcp-Protocol-Version: 2025-06-18"), ""},
		{"no header", exchange(`{"id":2,"method":"ping"}`, "", "Mcp-Session-Id: S"), ""},
		{"another revision", exchange(`{"id":2,"method":"ping"}`, "", "Mcp-Session-Id: S", "Mcp-Protocol-Version: 2025-11-25"), "header-revision"},
		{"another revision, refused", refused, ""},
		{"modern initialize", exchange(`{"id":2,"method":"initialize"}`, "", "Mcp-Protocol-Version: 2026-07-28"), "initialize-under-modern-header"},
		{"legacy header", exchange(`{"id":2,"method":"tools/list","params":{`+envelope+`}}`, "", "Mcp-Protocol-Version: 2025-11-25"), "envelope-under-legacy-header"},
		{"JSON alone", exchange(`{"id":2,"method":"ping"}`, "", "Mcp-Session-Id: S", "Accept: application/json"), "accept"},
		{"anything", exchange(`{"id":2,"method":"ping"}`, "", "Mcp-Session-Id: S", "Accept: */*"), ""},
		{"modern, a stream alone", exchange(`{"id":2,"method":"tools/list","params":{`+envelope+`}}`, "", "Accept: text/event-stream"), "modern-accept"},
		{"raw", exchange(`{"id":2,"method":"tools/call","params":{`+envelope+`}}`, "", "Mcp-Name: größe"), "raw-name"},
		{"task", exchange(`{"id":2,"method":"tasks/get","params":{`+envelope+`}}`, ""), "task-name-missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := map[string]int{}
			if tt.want != "" {
				want[tt.want] = 1
			}
			if got := ByClients([]Exchange{opened, tt.e}); !maps.Equal(got, want) {
				t.Errorf("ByClients() = %v, want %v", got, want)
			}
		})
	}
}

func TestByServers(t *testing.T) {
	status := func(e Exchange, status int) Exchange { e.Status = status; return e }
	get := exchange("", `data: {"id":7,"result":{}}`)
	get.Method = http.MethodGet
	old := exchange("", "event: endpoint\ndata: /post\n\ndata: {\"id\":7,\"result\":{}}")
	old.Method = http.MethodGet
	old.Said.Set("Content-Type", "text/event-stream")
	list, call := `{"id":1,"method":"tools/list"}`, `{"id":1,"method":"tools/call"}`
	for _, tt := range []struct {
		name string
		e    Exchange
		want string // empty for none
	}{
		{"nothing", exchange(list, `data: {"id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}`), ""},
		{"an error", exchange(call, `{"id":1,"error":{"code":-1}}`), ""},
		{"no list", exchange(call, `{"id":1,"result":{}}`), "list-missing"},
		{"no content", exchange(call, `{"id":1,"result":{"structuredContent":null}}`), "list-missing"},
		{"null cursor", exchange(list, `{"id":1,"result":{"tools":[],"nextCursor":null}}`), "null-members"},
		{"null title", exchange(list, `{"id":1,"result":{"tools":[{"inputSchema":{"type":"object"},"title":null}]}}`), "null-members"},
		{"no schema", exchange(list, `{"id":1,"result":{"tools":[{"name":"a"}]}}`), "tool-schema"},
		{"no id", exchange(list, `{"id":null,"error":{"code":-1}}`), "answer-without-id"},
		{"no id, refused", status(exchange(list, `{"id":null,"error":{"code":-1}}`), 400), ""},
		{"200", exchange(`{"method":"notifications/initialized"}`, ""), "notification-status"},
		{"202", status(exchange(`{"method":"notifications/initialized"}`, ""), 202), ""},
		{"lost", status(exchange(list, "", "Mcp-Session-Id: S"), 400), "lost-session-status"},
		{"unframed", exchange(call, "data: {}\n\n{\"id\":1,\"error\":{\"code\":-1}}\n"), "unframed-answer"},
		{"elsewhere", get, "answer-elsewhere"},
		{"HTTP+SSE", old, ""},
		{"its revision", exchange(`{"id":1,"method":"initialize"}`, `{"id":1,"result":{"protocolVersion":"2026-07-28"}}`), "server-revision"},
		{"progress", exchange(call, "data: {\"method\":\"notifications/progress\",\"params\":{\"progress\":2}}\n\ndata: {\"method\":\"notifications/progress\",\"params\":{\"progress\":2}}\n"), "progress-order"},
		{"name", exchange(call, `{"id":1,"error":{"code":-32020}}`, "Mcp-Name: =?base64?eA==?="), "encoded-name-refused"},
		{"notice", exchange(`{"id":1,"method":"subscriptions/listen"}`, `data: {"method":"notifications/tools/list_changed"}`), "untagged-notice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			if got := ByServers([]Exchange{tt.e}); !slices.Equal(got, want) {
				t.Errorf("ByServers() = %q, want %q", got, want)
			}
		})
	}
}

// TestRecorder proves that a Recorder keeps what it passes on, and changes nothing.
func TestRecorder(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", r.URL.Path)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("said"))
	}))
	defer server.Close()
	r, err := Start(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := http.Post(r.URL+"/mcp", "application/json", strings.NewReader("asked"))
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4)
	if _, err := res.Body.Read(text); string(text) != "said" {
		t.Errorf("the answer is %q, %v", text, err)
	}
	_ = res.Body.Close()
	all := r.Exchanges()
	if len(all) != 1 || string(all[0].Body) != "asked" || all[0].Status != 202 || all[0].Said.Get("Mcp-Session-Id") != "/mcp" || string(all[0].Answer) != "said" {
		t.Errorf("Exchanges() = %+v, want what was sent", all)
	}
	r.Forget()
	if left := r.Exchanges(); len(left) > 0 {
		t.Errorf("after Forget there are %+v", left)
	}
}
