package page

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// The room of a server shows the tasks that are held for its clients, and a button cancels one: the
// server hears of it, and the audit log. Another page can't.
func TestLiveTasks(t *testing.T) {
	var made, cancelled atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := readCall(r)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case c.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case c.Method == "initialize":
			respond(w, c, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"mine","version":"1"}}`)
		case c.Method == "tools/list":
			respond(w, c, `"result":{"tools":[{"name":"dig","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
		case c.Method == "tools/call":
			respond(w, c, fmt.Sprintf(`"result":{"task":{"taskId":"upstream-%d","status":"working","createdAt":"2026-11-01T00:00:00Z","lastUpdatedAt":"2026-11-01T00:00:00Z","ttl":null}}`, made.Add(1)))
		case c.Method == "tasks/cancel":
			cancelled.Add(1)
			respond(w, c, `"result":{"taskId":"upstream-1","status":"cancelled"}`)
		default:
			respond(w, c, `"error":{"code":-32601,"message":"no such method"}`)
		}
	}))
	t.Cleanup(h.Close)
	w := newWorld(t, fmt.Sprintf("  mine: {url: %q}\n", h.URL))
	b := newBrowser(t)
	b.login(w)
	for range 2 {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"dig","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"digger","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/mcp/mine", strings.NewReader(body))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "dig"} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(text), `"resultType":"task"`) {
			t.Fatalf("the call = %s %s, want a task", res.Status, text)
		}
	}
	eval[bool](b, `location.hash = 'servers/mine'; true`)
	b.do(chromedp.WaitVisible("button[data-task]"))
	b.sees("Live tasks", "dig", "anonymous", "never", "the server")
	b.do(chromedp.Click("button[data-task]"))
	b.sees("was asked to cancel the task")
	rig.Until(t, patience, "the audit log and the server", func() string {
		if n := len(w.audited(t, `"method":"cancel-task"`, `"server":"mine"`, `"principal":"admin"`, `"name":"dig"`)); n != 1 || cancelled.Load() != 1 {
			return fmt.Sprintf("%d lines, %d cancelled, want one each", n, cancelled.Load())
		}
		return ""
	})
	if got := eval[bool](b, `document.body.textContent.includes('upstream-')`); got {
		t.Error("the page shows ids of the server")
	}
	var told struct{ List []struct{ Key string } }
	w.get(t, "/api/servers/mine/tasks", &told)
	if len(told.List) != 2 { // what became of it tells the next look
		t.Fatalf("told of %+v", told)
	}
	for name, header := range map[string]http.Header{
		"no token":         {"Content-Type": {"application/json"}},
		"another origin":   {"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}, "Origin": {"https://evil.example"}},
		"a form's content": {"Content-Type": {"text/plain"}, "Authorization": {"Bearer " + token}},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.admin+"/api/servers/mine/cancel", strings.NewReader(fmt.Sprintf(`{"task": %q}`, told.List[1].Key)))
		req.Header = header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode < 400 || cancelled.Load() != 1 {
			t.Errorf("%s = %s, and %d tasks are cancelled", name, res.Status, cancelled.Load())
		}
	}
}
