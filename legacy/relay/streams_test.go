package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// Whatever a server answers reaches the client byte for byte, and what the client
// sends the server: the id aside.
func TestS02BytesPass(t *testing.T) {
	for _, c := range []struct{ name, request, answer string }{
		{"result", `"method":"tools/call","params":{"name":"a","arguments":{"n":9007199254740993,"f":1.50e+2},"_meta":{"progressToken":"t","x/y":null},"task":{"ttl":1}}`,
			`"result":{"content":[{"type":"later","x":1.0}],"structuredContent":[1],"resultType":"complete","ttlMs":1,"_meta":{"io.modelcontextprotocol/serverInfo":{}}},"extra":{"a":1}`},
		{"url elicitation", `"method":"tools/call","params":{"name":"b"}`,
			`"error":{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","elicitationId":"e-1","url":"http://x","message":"m"}]},"more":true}`},
		{"missing resource", `"method":"resources/read","params":{"uri":"a:b"}`, `"error":{"code":-32002,"message":"Resource not found"}`},
		{"task", `"method":"tasks/get","params":{"taskId":"7"}`, `"result":{"taskId":"7","status":"working"}`},
		{"level", `"method":"logging/setLevel","params":{"level":"debug"}`, `"result":{"was":"info"}`},
		{"ping", `"method":"ping"`, `"result":{"pong":true}`},
		{"subscribe", `"method":"resources/subscribe","params":{"uri":"a:b","deep":true}`, `"result":{}`},
		{"unheard of", `"method":"vendor/odd","params":{}`, `"result":{"odd":1}`},
		{"modern", `"method":"server/discover","params":{}`, `"error":{"code":-32601,"message":"Method not found"}`},
	} {
		t.Run("S-02 "+c.name, func(t *testing.T) {
			b, peers := pipeBack(t, back.Options{})
			st := linkedTo(t, b)
			done := make(chan struct{})
			go func() {
				defer close(done)
				p := <-peers
				m := p.Want("initialize")
				p.Result(m.ID, legacytest.OddResult)
				m = p.Read()
				if want := `{"jsonrpc":"2.0","id":2,` + c.request + `}`; string(m.Text) != want {
					t.Errorf("the server got %s\nwant         %s", m.Text, want)
				}
				p.Write(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, c.answer)
			}()
			id := st.Send(t, "POST", legacytest.OddInitialize).Header.Get("Mcp-Session-Id")
			r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":"q",`+c.request+`}`, "Mcp-Session-Id", id)
			if want := `{"jsonrpc":"2.0","id":"q",` + c.answer + `}`; r.Status != 200 || r.Body != want {
				t.Errorf("answer = %d %s\nwant     %s", r.Status, r.Body, want)
			}
			<-done
		})
	}
}

// Streams are as the server has them, over HTTP: what comes on a call's is the
// call's, what comes on the GET stream is the session's. Questions have ids of the
// client session's own, and answers find their way back.
func TestS02StreamsAndQuestions(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	answers, onGet := make(chan string, 4), make(chan string, 4)
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		event := legacytest.StartSSE(w)
		for {
			select {
			case text := <-onGet:
				event("%s", text)
			case <-r.Context().Done():
				return
			}
		}
	}
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event := legacytest.StartSSE(w)
		event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"before any setLevel"}}`)
		event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","elicitationId":"e-1","url":"http://x"}}`)
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":2}}`)
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1}}`)
		event(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"got":%s}}`, m.ID, <-answers)
	}
	p.On[""] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		answers <- string(m.Text)
		w.WriteHeader(http.StatusAccepted)
	}
	st := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}}))
	g := st.Enter(t, "2025-06-18")
	get := g.Listen(t)
	onGet <- `{"jsonrpc":"2.0","id":0,"method":"vendor/ask","params":{"a":1.0}}`
	get.Want(`{"jsonrpc":"2.0","id":1,"method":"vendor/ask","params":{"a":1.0}}`)
	if r := g.Post(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","more":1}}`); r.Status != 202 {
		t.Errorf("posted answer = %d %s, want 202", r.Status, r.Body)
	}
	if got := <-answers; got != `{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no","more":1}}` {
		t.Errorf("the server got %s", got)
	}

	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"tok"}}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"before any setLevel"}}`)
	f.Want(`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url","elicitationId":"e-1","url":"http://x"}}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":2}}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1}}`)
	g.Post(t, `{"jsonrpc":"2.0","id":2,"result":{"action":"accept"}}`)
	f.Want(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"got":{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}}}`)
	f.Ends()

	onGet <- `{"jsonrpc":"2.0","id":"w","method":"roots/list"}`
	get.Want(`{"jsonrpc":"2.0","id":3,"method":"roots/list"}`)
	onGet <- `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w","reason":"r"}}`
	get.Want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"r"}}`)
	for _, text := range []string{
		`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e-1"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"7","status":"working"}}`,
		`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"x":[1.0]},"extra":1}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"never:subscribed"}}`,
	} {
		onGet <- text
		get.Want(text)
	}
	get.Response.Body.Close()
}

// enterPiped opens a session of a client with a server on a pipe.
func enterPiped(t *testing.T) (*linkedFront, *legacytest.Session, *legacytest.ConnPeer) {
	t.Helper()
	b, peers := pipeBack(t, back.Options{})
	st := linkedTo(t, b)
	peer := make(chan *legacytest.ConnPeer, 1)
	go func() { // ends with Enter
		p := <-peers
		p.Handshake(legacytest.Everything)
		peer <- p
	}()
	g := st.Enter(t, "2025-11-25")
	return st, g, <-peer
}

// What a client tells reaches the server, and without a GET stream what the server
// tells waits for one.
func TestS02Notifications(t *testing.T) {
	_, g, p := enterPiped(t)
	for _, text := range []string{
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"theirs","progress":0.5}}`,
		`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"x":1.0},"extra":1}`,
	} {
		if r := g.Post(t, text); r.Status != 202 || r.Body != "" {
			t.Errorf("posted notification = %d %s, want 202", r.Status, r.Body)
		}
		if m := p.Read(); string(m.Text) != text {
			t.Errorf("the server got %s\nwant         %s", m.Text, text)
		}
	}
	const told = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`
	p.Write(told, 1)
	p.Write(told, 2)
	get := g.Listen(t)
	get.Want(fmt.Sprintf(told, 1))
	get.Want(fmt.Sprintf(told, 2))
	seen := get.Last
	get.Response.Body.Close()
	p.Write(told, 3)
	again := g.Listen(t, "Last-Event-ID", seen)
	again.Want(fmt.Sprintf(told, 3))
	again.Response.Body.Close()
}

// One connection has no streams: progress goes with its call, and a question on a
// call's stream where nothing else is open.
func TestS02ConnectionToStreams(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	st := linkedTo(t, b)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		p.Write(`{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}`)
		answer := p.Read()
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1}}`)
		p.Write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"said":%s}}`, m.ID, answer.Result)
	}()
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"_meta":{"progressToken":"tok"}}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`)
	g.Post(t, `{"jsonrpc":"2.0","id":1,"result":{"text":"hi"}}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1}}`)
	f.Want(`{"jsonrpc":"2.0","id":"c","result":{"said":{"text":"hi"}}}`)
	f.Ends()
	get := g.Listen(t)
	get.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	get.Response.Body.Close()
}

// What a server without streams logs during the only call in flight is on that call's
// stream, since a client may end its session after that. A call that was cancelled is none;
// what is logged beside several calls, or none, waits for a GET.
func TestS02LogMessagesOfTheOnlyCall(t *testing.T) {
	t.Parallel()
	st, g, p := enterPiped(t)
	get := g.Listen(t)
	told := func(data string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"` + data + `"}}`
	}
	call := func(id string) (*legacytest.Stream, wire.ID) {
		f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":"`+id+`","method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
		return f, p.Want("tools/call").ID
	}

	p.Write("%s", told("before"))
	get.Want(told("before"))
	first, _ := call("first")
	p.Write("%s", told("in the only call"))
	first.Want(told("in the only call"))
	second, id := call("second")
	p.Write("%s", told("in two calls"))
	get.Want(told("in two calls"))
	g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"first"}}`)
	p.Want("notifications/cancelled")
	p.Write("%s", told("in the second"))
	second.Want(told("in the second"))
	p.Result(id, `{}`)
	second.Want(`{"jsonrpc":"2.0","id":"second","result":{}}`)
	second.Ends()
	p.Write("%s", told("in a cancelled one"))
	get.Want(told("in a cancelled one"))
	first.Ends()
	p.Write("%s", told("after"))
	get.Want(told("after"))
	get.Response.Body.Close()
}

// A pipe on either side keeps the order, what surrounds answers included.
func TestS02PipeToPipe(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	l := linkedTo(t, b).line(t)
	early, late := `{"jsonrpc":"2.0","method":"notifications/early"}`, `{"jsonrpc":"2.0","method":"notifications/late"}`
	l.Send(legacytest.OddInitialize)
	p := <-peers
	m := p.Want("initialize")
	p.Write("%s", early)
	p.Result(m.ID, legacytest.OddResult)
	p.Write("%s", late)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`+legacytest.OddResult+`}`, early, late)
	// Messages leave in the order in which they came, requests among them.
	for n := range 5 {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"n":%[1]d}}`, n))
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n","params":{"n":%d}}`, n))
	}
	for n := range 5 {
		m := p.Read()
		if got := string(wire.Get(m.Params, "n")); m.Method != "tools/call" || got != fmt.Sprint(n) {
			t.Errorf("the server got %s, want call %d", m.Text, n)
		}
		if m := p.Read(); m.Method != "notifications/n" {
			t.Errorf("the server got %s, want notification %d", m.Text, n)
		}
		p.Write(`{"jsonrpc":"2.0","method":"notifications/before","params":{"n":%d}}`, n)
		p.Result(m.ID, fmt.Sprint(n))
		p.Write(`{"jsonrpc":"2.0","method":"notifications/after","params":{"n":%d}}`, n)
	}
	for n := range 5 {
		l.Want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/before","params":{"n":%d}}`, n),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%[1]d}`, n),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/after","params":{"n":%d}}`, n))
	}
	// The end of the pipe is the end of the server's connection.
	l.Close()
	if _, err := p.Conn.Read(); err == nil {
		t.Error("the server's connection is open after the client's has ended")
	}
}

// What a call's stream is to carry is there when its client's connection takes it up,
// however large: nobody was away.
func TestS02LargeMessages(t *testing.T) {
	t.Parallel()
	p := legacytest.NewHTTPServer(t)
	text := strings.Repeat("x", 2*int(limits.ClientEvents.Default))
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event := legacytest.StartSSE(w)
		event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}`, text)
		event(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, m.ID, text)
	}
	st := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}}))
	for _, revision := range []string{"2025-03-26", "2025-11-25"} {
		t.Run("S-02 "+revision, func(t *testing.T) {
			p.Revision = revision
			g := st.Enter(t, revision)
			for range 20 {
				r := g.Call(t, "tools/call", `{}`)
				if n := strings.Count(r.Body, text); n != 2 {
					t.Fatalf("%d of 2 large messages came; the end is %q", n, r.Body[max(0, len(r.Body)-200):])
				}
			}
		})
	}
	if n := st.Count("limit client_events"); n != 0 {
		t.Errorf("%d messages were not kept", n)
	}
}
