package tap

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func schemas(t *testing.T) *Schemas {
	t.Helper()
	dir, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	s, err := LoadSchemas(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`

func initialized(revision string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, revision)
}

// TestJudge proves what a session takes for wrong, and that it takes nothing
// else for it.
func TestJudge(t *testing.T) {
	all := schemas(t)
	const (
		link  = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}}`
		audio = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}}`
		text  = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}`
		form  = `{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`
	)
	for _, tt := range []struct {
		name, revision, asked, sent string
		ok                          bool
	}{
		{"text", "2024-11-05", "tools/call", text, true},
		{"audio", "2025-03-26", "tools/call", audio, true},
		{"audio before its time", "2024-11-05", "tools/call", audio, false},
		{"a link", "2025-06-18", "tools/call", link, true},
		{"a link before its time", "2025-03-26", "tools/call", link, false},
		{"no content", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{}}`, false},
		{"the result of another method", "2025-11-25", "tools/list", text, false},
		{"an empty result", "2025-11-25", "ping", `{"jsonrpc":"2.0","id":1,"result":{}}`, true},
		{"an error", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}`, true},
		{"an error without a message", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}`, false},
		{"an id of nobody", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":"1","result":{"content":[]}}`, false},
		{"a question", "2025-06-18", "tools/call", form, true},
		{"a question before its time", "2025-03-26", "tools/call", form, false},
		{"a notification", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}`, true},
		{"a notification without its token", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2}}`, false},
		{"a request without an id", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","method":"ping"}`, false},
		{"a modern notification", "2025-11-25", "tools/call", `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`, false},
		{"no version", "2025-11-25", "ping", `{"id":1,"result":{}}`, false},
		{"a batch", "2025-03-26", "ping", `[{"jsonrpc":"2.0","id":1,"result":{}}]`, true},
		{"a batch after its time", "2025-06-18", "ping", `[{"jsonrpc":"2.0","id":1,"result":{}}]`, false},
		{"noise", "2025-06-18", "ping", `not found`, false},
		{"resultType", "2025-11-25", "ping", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`, false},
		{"ttlMs", "2025-11-25", "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"ttlMs":0}}`, false},
		{"cacheScope", "2025-11-25", "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"cacheScope":"private"}}`, false},
		{"serverInfo", "2025-11-25", "ping", `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{}}}}`, false},
		{"subscriptionId", "2025-11-25", "ping", `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`, false},
		{"another's _meta", "2025-11-25", "ping", `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"example.com/x":1}}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSession(all)
			s.Asked([]byte(initialize))
			if err := s.Judge([]byte(initialized(tt.revision))); err != nil {
				t.Fatal(err)
			}
			s.Asked(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q}`, tt.asked))
			if err := s.Judge([]byte(tt.sent)); (err == nil) != tt.ok {
				t.Errorf("Judge(%s) at %s = %v, want ok = %v", tt.sent, tt.revision, err, tt.ok)
			}
		})
	}
	t.Run("a revision of nobody", func(t *testing.T) {
		s := NewSession(all)
		s.Asked([]byte(initialize))
		if s.Judge([]byte(initialized("2026-07-28"))) == nil {
			t.Error("a session of a modern revision was taken for a legacy one")
		}
	})
}

// peer answers initialize with JSON and everything else with a stream, of which
// it sends the second half when it may.
type peer struct{ half chan struct{} }

func (p peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set(sessionHeader, "one")
	if strings.Contains(string(body), "initialize") {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, initialized("2025-11-25"))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	io.WriteString(w, ": hello\n\nid: 1\ndata:\n\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/tools/list_changed\"}\r\n\r\n")
	w.(http.Flusher).Flush()
	select {
	case <-p.half:
	case <-r.Context().Done():
	}
	io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[],\"ttlMs\":5}}\n\n")
}

func startTap(t *testing.T, h http.Handler) *Tap {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	tap, err := New(server.URL, schemas(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	return tap
}

func send(t *testing.T, tap *Tap, session, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tap.URL("/mcp"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(sessionHeader, session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// TestTap proves that a tap passes a stream on while it flows, and reports the
// message in it that is not the revision's.
func TestTap(t *testing.T) {
	p := peer{make(chan struct{})}
	tap := startTap(t, p)
	send(t, tap, "", initialize)
	res := send(t, tap, "one", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	lines := bufio.NewReader(res.Body)
	for line := ""; !strings.Contains(line, "list_changed"); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if got := tap.Problems(); len(got) != 0 {
		t.Fatalf("problems before the bad message: %q", got)
	}
	close(p.half)
	if _, err := io.ReadAll(lines); err != nil {
		t.Fatal(err)
	}
	if got := tap.Problems(); len(got) != 1 || !strings.Contains(got[0], "ttlMs") {
		t.Errorf("problems = %q, want one about ttlMs", got)
	}
	got := tap.Messages()
	if len(got) != 3 || got[1].Revision != "2025-11-25" || !strings.Contains(got[1].Text, "list_changed") {
		t.Errorf("messages = %q, want the three that were sent", got)
	}
}

// TestCut proves that a client of a cut response sees a broken connection.
func TestCut(t *testing.T) {
	tap := startTap(t, peer{make(chan struct{})})
	send(t, tap, "", initialize)
	res := send(t, tap, "one", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	get := true
	if n := tap.Cut(&get); n != 0 {
		t.Errorf("Cut(get) = %d, want 0", n)
	}
	if n := tap.Cut(nil); n != 1 {
		t.Errorf("Cut(nil) = %d, want 1", n)
	}
	if text, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the response ended well, with %q", text)
	}
}

// TestEndpoint proves that what is posted to the endpoint of HTTP+SSE is in the
// session of the stream that named it.
func TestEndpoint(t *testing.T) {
	answers := make(chan string)
	tap := startTap(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: endpoint\ndata: /message?s=1\n\n")
		w.(http.Flusher).Flush()
		for a := range answers {
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", a)
		}
	}))
	res, err := http.Get(tap.URL("/sse"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for range 3 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range []string{initialize, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`} {
		res, err := http.Post(tap.URL("/message?s=1"), "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	answers <- initialized("2024-11-05")
	answers <- `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x"}]}}`
	close(answers)
	if _, err := io.ReadAll(lines); err != nil {
		t.Fatal(err)
	}
	if got := tap.Problems(); len(got) != 1 || !strings.Contains(got[0], "inputSchema") {
		t.Errorf("problems = %q, want one about the missing inputSchema", got)
	}
}
