package back

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// oddTask is what a server answers that makes a task, written as none does.
	oddTask = `{ "taskId":"a/\u0062 9","status":"working","resultType":"task","ttlMs":null,"createdAt":null,"eventSource":{"input":{"taskId":"a/\u0062 9"}},"n":1.0}`
	needs   = `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

// paramsOf returns the params of a message.
func paramsOf(t *testing.T, text string) string {
	t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{UniqueParams: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Params)
}

// What is about tasks passes as it came, in both directions: the extension's key, the
// answer that is a task, the ids wherever they stand.
func TestT01TasksPass(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", oddTask)
	p.says("tasks/get", `{"resultType":"complete","taskId":"a/\u0062 9","status":"completed","result":{"isError":null,"content":[]},"_meta":{}}`)
	p.says("tasks/update", `{"resultType":"complete","_meta":{}}`)
	p.says("tasks/cancel", `{"resultType":"complete","_meta":{}}`)
	f, _ := before(t, p.back(Options{}))
	for _, c := range []struct{ method, rest, answer string }{
		{"tools/call", `,"name":"x","arguments":{"id":"a/\u0062 9"},"task":{"ttl":1}`, oddTask},
		{"tasks/get", `,"taskId":"a/\u0062 9"`, `{"taskId":"a/\u0062 9","status":"completed","result":{"isError":null,"content":[]},"resultType":"complete","_meta":{}}`},
		{"tasks/update", `,"taskId":"a/\u0062 9","inputResponses":{"k":{"action":"accept","content":{"n":1.0}}},"requestState":"x"`, ""},
		{"tasks/cancel", `,"taskId":"a/\u0062 9","more":null`, ""},
	} {
		t.Run("T-01 "+c.method, func(t *testing.T) {
			text := moderntest.Request("7", c.method, moderntest.DeclaresTasks, c.rest)
			text = strings.Replace(text, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/relatedTaskIds":["a/\u0062 9"],`, 1)
			w := moderntest.OverHTTP(t, f, text, nil)
			if w.Code != 200 || c.answer != "" && !sameMembers(w.Body.String(), `{"jsonrpc":"2.0","id":7,"result":`+c.answer+`}`) {
				t.Errorf("answer = %d %s\nwant %s", w.Code, w.Body, c.answer)
			}
			if got := p.requests(c.method); len(got) != 1 || got[0].params != paramsOf(t, text) {
				t.Errorf("the server got %v\nwant params %s", got, paramsOf(t, text))
			}
		})
	}
}

// sameMembers reports whether two responses have the same members in their results, each
// to the byte; a task that was made is the same to the byte as a whole.
func sameMembers(got, want string) bool {
	a, b := wire.Get([]byte(got), "result"), wire.Get([]byte(want), "result")
	if string(wire.Get(a, "resultType")) == `"task"` {
		return got == want
	}
	n := 0
	for k, v := range wire.Members(b) {
		n++
		if string(wire.Get(a, k.String())) != string(v) {
			return false
		}
	}
	for range wire.Members(a) {
		n--
	}
	return n == 0
}

// A server's refusal for want of the extension is the client's to read.
func TestT01WhoDoesNotDeclareIsRefusedByTheServer(t *testing.T) {
	p := newUpPeer(t)
	refuses := func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, http.StatusBadRequest, m.ID, spec.CodeMissingCapability, needs)
	}
	f, _ := before(t, p.back(Options{}))
	for method, rest := range map[string]string{"tools/call": `,"name":"x"`, "tasks/get": `,"taskId":"1"`, "tasks/update": `,"taskId":"1"`, "tasks/cancel": `,"taskId":"1"`} {
		p.on[method] = refuses
		w := moderntest.OverHTTP(t, f, moderntest.Request("1", method, "{}", rest), nil)
		if w.Code != 400 || !strings.Contains(w.Body.String(), `"code":-32021`) || !strings.Contains(w.Body.String(), needs) {
			t.Errorf("%s = %d %s, want the server's -32021", method, w.Code, w.Body)
		}
	}
}

// A legacy client has no part in the extension.
func TestT01LegacyClientsHaveNone(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/list", `{"resultType":"complete","tools":[]}`)
	p.says("server/discover", strings.Replace(discoverResult(0, "private"), `"logging":{}`, `"extensions":{"io.modelcontextprotocol/tasks":{}}`, 1))
	b := p.back(Options{})
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"} {
		_, err := b.Serve(t.Context(), upRequest(method, `{"taskId":"1"}`), &backtest.Caller{})
		var refusal *mcp.Refusal
		if e := wireErr(t, err); e.Code != spec.CodeMethodNotFound || !errors.As(err, &refusal) {
			t.Errorf("Serve(%s) = %v, want -32601 without troubling the server", method, err)
		}
	}
	req := upRequest("tools/list", `{}`)
	req.Capabilities, req.Profile.Capabilities = []byte(moderntest.DeclaresTasks), []byte(moderntest.DeclaresTasks)
	if _, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	if got := p.requests("tools/list")[0].params; strings.Contains(got, spec.ExtensionTasks) || !strings.Contains(got, "com.example/a") {
		t.Errorf("the server got %s, want no tasks of a legacy client", got)
	}
	for era, want := range map[spec.Era]bool{spec.Legacy: false, spec.Modern: true} {
		req.Method, req.Era = spec.MethodDiscover, era
		d, err := b.Describe(t.Context(), req)
		if err != nil || strings.Contains(string(d.Capabilities), spec.ExtensionTasks) != want {
			t.Errorf("a client of era %v is told %s, %v; tasks: want %v", era, d.Capabilities, err, want)
		}
	}
}

const (
	filterOfTasks = `{"taskIds":["t-1","a/\u0062 9"],"toolsListChanged":false}`
	mostWait      = 30 * time.Second
	taskChange    = `"taskId":"a/\u0062 9","status":"working","ttlMs":1.0,`
)

// A stream that names tasks has one of its own upstream, over HTTP: what the server
// acknowledges and tells comes under the client's id.
func TestT01ListenStreamsOfTasks(t *testing.T) {
	p := newUpPeer(t)
	p.on[spec.MethodListen] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event, id := upStream(w), m.ID.String()
		event("%s", moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{"taskIds":["a/\u0062 9"]},`, id))
		event("%s", moderntest.Tagged("notifications/tasks", taskChange, id))
		event(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","_meta":{"%s":%[1]s}}}`, id, spec.MetaSubscriptionID)
	}
	f, _ := before(t, p.back(Options{}))
	c := moderntest.Follow(t, f, `"mine"`, filterOfTasks)
	c.Want(moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{"taskIds":["a/\u0062 9"]},`, `"mine"`))
	c.Want(moderntest.Tagged("notifications/tasks", taskChange, `"mine"`))
	c.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":"mine","result":{"resultType":"complete","_meta":{"%s":"mine"}}}`, spec.MetaSubscriptionID))
	if got := string(wire.Get([]byte(p.requests(spec.MethodListen)[0].params), "notifications")); got != filterOfTasks {
		t.Errorf("the server got the filter %s, want %s", got, filterOfTasks)
	}
}

// The same over connections on both sides: several streams share one.
func TestT01ListenStreamsOfTasksOverConnections(t *testing.T) {
	b, peers := upLines(t, Options{})
	f, _ := before(t, b)
	l := lineTo(t, f)
	listen := func(id string) {
		l.Send(moderntest.Request(id, spec.MethodListen, moderntest.DeclaresTasks, `,"notifications":`+filterOfTasks))
	}
	listen("1")
	var p *backtest.Peer
	select {
	case p = <-peers:
	case <-time.After(mostWait):
		t.Fatalf("the server was not called for %v", mostWait)
	}
	late := time.AfterFunc(mostWait, func() { p.Conn.Close() })
	defer late.Stop()
	first := p.Want(spec.MethodListen)
	listen(`"1"`)
	second := p.Want(spec.MethodListen)
	for _, m := range []wire.Message{first, second} {
		if got := string(wire.Get(m.Params, "notifications")); got != filterOfTasks {
			t.Errorf("the server got the filter %s, want %s", got, filterOfTasks)
		}
	}
	for id, m := range map[string]wire.Message{"1": first, `"1"`: second} {
		p.Write("%s", moderntest.Tagged(spec.NotifyAcknowledged, `"notifications":{"taskIds":[]},`, m.ID.String()))
		l.Want(spec.NotifyAcknowledged, `"taskIds":[]`, `"`+spec.MetaSubscriptionID+`":`+id+`}`)
		p.Write("%s", moderntest.Tagged("notifications/tasks", taskChange, m.ID.String()))
		if got, want := l.Next(), moderntest.Tagged("notifications/tasks", taskChange, id); got != want {
			t.Errorf("sent = %s\nwant   %s", got, want)
		}
	}
	l.Cancel("1")
	p.Want(spec.NotifyCancelled)
	p.Result(second.ID, `{"resultType":"complete"}`)
	l.Want(`"id":"1","result"`)
}

// The header that names a task is made for the server, and need not come from the
// client.
func TestT02NamesOfTasks(t *testing.T) {
	for _, c := range []struct {
		name, params string
		header       []string // nil for none
		status       int
		code         string
		sent         string // Mcp-Name upstream, if it gets there
	}{
		{"equal", `"taskId":"t-1"`, []string{"t-1"}, 200, "", "t-1"},
		{"missing", `"taskId":"t-1"`, nil, 200, "", "t-1"},
		{"in base64", `"taskId":"té"`, []string{"=?base64?dMOp?="}, 200, "", "=?base64?dMOp?="},
		{"outside ASCII and missing", `"taskId":"té"`, nil, 200, "", "=?base64?dMOp?="},
		{"differs", `"taskId":"t-1"`, []string{"t-2"}, 400, "-32020", ""},
		{"empty", `"taskId":"t-1"`, []string{""}, 400, "-32020", ""},
		{"doubled", `"taskId":"t-1"`, []string{"t-1", "t-1"}, 400, "-32020", ""},
		{"no id", `"task":"t-1"`, []string{"t-1"}, 400, "-32602", ""},
		{"id a number", `"taskId":1`, []string{"1"}, 400, "-32602", ""},
		{"id null", `"taskId":null`, nil, 400, "-32602", ""},
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			t.Run("T-02 "+c.name+" "+method, func(t *testing.T) {
				p := newUpPeer(t)
				p.says(method, `{"resultType":"complete"}`)
				f, _ := before(t, p.back(Options{}))
				w := moderntest.OverHTTPWith(t, f, moderntest.Request("1", method, moderntest.DeclaresTasks, ","+c.params), func(h http.Header) {
					h.Del(spec.HeaderName)
					if c.header != nil {
						h[spec.HeaderName] = c.header
					}
				})
				if w.Code != c.status || !strings.Contains(w.Body.String(), `"code":`+c.code) && c.code != "" {
					t.Errorf("answer = %d %s, want %d %s", w.Code, w.Body, c.status, c.code)
				}
				got := p.requests(method)
				if c.sent == "" && len(got) != 0 || c.sent != "" && (len(got) != 1 || strings.Join(got[0].header[spec.HeaderName], "|") != c.sent) {
					t.Errorf("the server got %v, want Mcp-Name %q", got, c.sent)
				}
			})
		}
	}
}

// Looking, answering and cancelling may be sent twice; creating may not.
func TestT02RepeatedOnce(t *testing.T) {
	for method, sent := range map[string]int{"tasks/get": 2, "tasks/update": 2, "tasks/cancel": 2, "tools/call": 1} {
		t.Run("T-02 "+method, func(t *testing.T) {
			p := newUpPeer(t)
			p.on[method] = func(http.ResponseWriter, *http.Request, wire.Message) { panic(http.ErrAbortHandler) }
			req := upModernRequest(method, paramsOf(t, moderntest.Request("1", method, moderntest.DeclaresTasks, `,"taskId":"1","name":"x"`)))
			_, err := p.back(Options{}).Serve(context.Background(), req, &backtest.Caller{})
			if e := wireErr(t, err); e.Code != spec.CodeInternal || len(p.requests(method)) != sent {
				t.Errorf("Serve = %v after %d requests, want -32603 after %d", err, len(p.requests(method)), sent)
			}
		})
	}
}
