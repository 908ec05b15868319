package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

const (
	taskHello = `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` +
		`{"elicitation":{},"tasks":{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}},"clientInfo":{"name":"c","version":"1"}}}`
	taskWelcome = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}`

	ofTask  = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t/\u0031"}}`
	oldTask = `{"taskId":"t/\u0031","status":"%s","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000,"pollInterval":1.0}`
)

// A taskPair is a client's session that is linked with a server of tasks.
type taskPair struct {
	t       *testing.T
	st      *linkedFront
	g       *legacytest.Session
	p       *legacytest.HTTPServer
	get     *legacytest.Stream
	onGet   chan string // what the server says there
	answers chan string // what the client posts, but for requests
}

func newTaskPair(t *testing.T) *taskPair {
	w := &taskPair{t: t, p: legacytest.NewHTTPServer(t), onGet: make(chan string, 4), answers: make(chan string, 4)}
	w.p.On["initialize"] = func(rw http.ResponseWriter, _ *http.Request, m wire.Message) {
		rw.Header().Set("Mcp-Session-Id", "up-1")
		legacytest.AnswerJSON(rw, m.ID, taskWelcome)
	}
	w.p.Get = func(rw http.ResponseWriter, r *http.Request) {
		event := legacytest.StartSSE(rw)
		for {
			select {
			case text := <-w.onGet:
				event("%s", text)
			case <-r.Context().Done():
				return
			}
		}
	}
	takes := func(rw http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.answers <- string(m.Text)
		rw.WriteHeader(http.StatusAccepted)
	}
	w.p.On[""], w.p.On["notifications/tasks/status"] = takes, takes
	w.st = linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: w.p.URL}}))
	r := w.st.Send(t, "POST", taskHello)
	if want := `{"jsonrpc":"2.0","id":"h","result":` + taskWelcome + `}`; r.Body != want {
		t.Fatalf("initialize = %s\nwant %s", r.Body, want)
	}
	if got, want := w.p.Requests("initialize")[0].Body, strings.Replace(taskHello, `"h"`, "1", 1); got != want {
		t.Errorf("the server got %s\nwant         %s", got, want)
	}
	w.g = &legacytest.Session{Endpoint: w.st.Endpoint, ID: r.Header.Get("Mcp-Session-Id"), Revision: "2025-11-25"}
	if r := w.g.Post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.Status != 202 {
		t.Fatalf("initialized = %d %s, want 202", r.Status, r.Body)
	}
	w.get = w.g.Listen(t)
	return w
}

// asks has the client send a request, which the server answers. Both pass to the byte.
func (w *taskPair) asks(method, params, answer string) {
	w.t.Helper()
	w.p.On[method] = func(rw http.ResponseWriter, _ *http.Request, m wire.Message) {
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}
	r := w.g.Post(w.t, `{"jsonrpc":"2.0","id":"q","method":"`+method+`","params":`+params+`}`)
	if want := `{"jsonrpc":"2.0","id":"q",` + answer + `}`; r.Status != 200 || r.Body != want {
		w.t.Errorf("%s = %d %s\nwant %s", method, r.Status, r.Body, want)
	}
	got := w.p.Requests(method)
	if params := `"params":` + params + `}`; !strings.HasSuffix(got[len(got)-1].Body, params) {
		w.t.Errorf("the server got %s\nwant %s", got[len(got)-1].Body, params)
	}
}

// posts has the client post what is no request, and wants the server to get it.
func (w *taskPair) posts(text, want string) {
	w.t.Helper()
	if r := w.g.Post(w.t, text); r.Status != 202 {
		w.t.Errorf("posting %s = %d %s, want 202", text, r.Status, r.Body)
	}
	if got := w.answer(); got != want {
		w.t.Fatalf("the server got %s\nwant         %s", got, want)
	}
}

// answer returns what the client posted, empty if nothing comes.
func (w *taskPair) answer() string {
	select {
	case text := <-w.answers:
		return text
	case <-time.After(bridgetest.Patience):
		w.t.Errorf("the server got nothing for %v", bridgetest.Patience)
		return ""
	}
}

// Tasks that the server holds: made, looked at, asked about, read, listed, cancelled.
func TestT04TasksOfTheServer(t *testing.T) {
	w := newTaskPair(t)
	w.asks("tools/call", `{"name":"a","arguments":{},"task":{"ttl":60000.0}}`, `"result":{"task":`+fmt.Sprintf(oldTask, "working")+`,"_meta":{"io.modelcontextprotocol/model-immediate-response":"w"}}`)
	w.asks("tasks/get", `{"taskId":"t/\u0031"}`, `"result":`+fmt.Sprintf(oldTask, "input_required"))
	status := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + fmt.Sprintf(oldTask, "input_required") + `}`
	w.onGet <- status
	w.get.Want(status)

	w.p.On["tasks/result"] = func(rw http.ResponseWriter, _ *http.Request, m wire.Message) {
		event := legacytest.StartSSE(rw)
		event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{},%s}}`, ofTask)
		event(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"got":%s,%s}}`, m.ID, w.answer(), ofTask)
	}
	f := legacytest.Read(t, w.st.Open(t, "POST", `{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":"t/\u0031"}}`, "Mcp-Session-Id", w.g.ID, "Mcp-Protocol-Version", "2025-11-25"))
	f.Want(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":{},` + ofTask + `}}`)
	if r := w.g.Post(t, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept",`+ofTask+`}}`); r.Status != 202 {
		t.Errorf("posted answer = %d %s, want 202", r.Status, r.Body)
	}
	f.Want(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"got":{"jsonrpc":"2.0","id":"q","result":{"action":"accept",` + ofTask + `}},` + ofTask + `}}`)
	f.Ends()

	w.asks("tasks/list", `{"cursor":"c"}`, `"result":{"tasks":[`+fmt.Sprintf(oldTask, "completed")+`],"nextCursor":"d"}`)
	w.asks("tasks/cancel", `{"taskId":"t/\u0031"}`, `"error":{"code":-32602,"message":"it is over","data":{"n":1.0}}`)
}

// Tasks that the client holds: the server asks for what it wants as a task, and looks
// after it.
func TestT04TasksOfTheClient(t *testing.T) {
	w := newTaskPair(t)
	for i, c := range []struct{ method, params, answer string }{
		{"elicitation/create", `{"message":"?","requestedSchema":{},"task":{"ttl":60000.0}}`, `{"task":` + fmt.Sprintf(oldTask, "working") + `}`},
		{"tasks/get", `{"taskId":"t/\u0031"}`, fmt.Sprintf(oldTask, "completed")},
		{"tasks/result", `{"taskId":"t/\u0031"}`, `{"action":"accept","content":{},` + ofTask + `}`},
		{"tasks/list", `{}`, `{"tasks":[]}`},
		{"tasks/cancel", `{"taskId":"t/\u0031"}`, fmt.Sprintf(oldTask, "cancelled")},
	} {
		w.onGet <- fmt.Sprintf(`{"jsonrpc":"2.0","id":"s-%d","method":"%s","params":%s}`, i, c.method, c.params)
		w.get.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`, i+1, c.method, c.params))
		w.posts(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i+1, c.answer), fmt.Sprintf(`{"jsonrpc":"2.0","id":"s-%d","result":%s}`, i, c.answer))
	}
	status := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + fmt.Sprintf(oldTask, "completed") + `}`
	w.posts(status, status)
}
