package back

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/front"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

// A linkedFront is a front over a real socket whose sessions are linked with a server.
type linkedFront struct {
	*legacytest.Endpoint
	legacytest.Metrics
	front *front.Front
}

// linkedTo returns a front whose sessions are linked with b's server.
func linkedTo(t *testing.T, b mcp.Linker) *linkedFront {
	return newLinkedFront(t, func(o *front.Options) { o.Linker = b })
}

func newLinkedFront(t *testing.T, change func(*front.Options)) *linkedFront {
	st := &linkedFront{}
	o := front.Options{Name: "docs", Handler: unlinked{}, Describer: unlinked{}, Subscriber: unlinked{}, Instance: "inst", Metrics: st,
		Admit: func(r *mcp.Request) error { r.Profile.Scope = "docs/" + r.Session; return nil }}
	change(&o)
	f, err := front.New(o)
	if err != nil {
		t.Fatal(err)
	}
	st.front, st.Endpoint = f, legacytest.Serve(t, f, func() mcp.Principal { return "ada" })
	return st
}

// unlinked refuses what a front asks for sessions that are not linked.
type unlinked struct{}

var errUnlinked = errors.New("the session is not linked")

func (unlinked) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return nil, errUnlinked
}

func (unlinked) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return nil, errUnlinked
}

func (unlinked) Subscribe(*mcp.Request, *fanout.Mailbox, mcp.SubscribeOptions) (mcp.Subscription, error) {
	return nil, errUnlinked
}

func TestS02HandshakeIsTheServersOwn(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	n := 0
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		n++
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("up-%d", n))
		legacytest.AnswerJSON(w, m.ID, legacytest.OddResult)
	}
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}))
	var ids []string
	for range 2 {
		r := st.Send(t, "POST", legacytest.OddInitialize)
		if want := `{"jsonrpc":"2.0","id":"h","result":` + legacytest.OddResult + `}`; r.Status != 200 || r.Body != want {
			t.Fatalf("initialize = %d %s\nwant %s", r.Status, r.Body, want)
		}
		ids = append(ids, r.Header.Get("Mcp-Session-Id"))
	}
	for i, got := range p.Requests("initialize") {
		if want := strings.Replace(legacytest.OddInitialize, `"h"`, fmt.Sprint(i+1), 1); got.Body != want {
			t.Errorf("the server got %s\nwant         %s", got.Body, want)
		}
	}
	// Each has a session of its own upstream, which ends with it and not before.
	for i, id := range ids {
		st.Send(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2024-10-07")
		got := p.Requests("notifications/initialized")
		if len(got) != i+1 || got[i].Header.Get("Mcp-Session-Id") != fmt.Sprintf("up-%d", i+1) || got[i].Header.Get("Mcp-Protocol-Version") != "2024-10-07" {
			t.Errorf("initialized of session %d came with %v", i+1, got)
		}
	}
	if r := st.Send(t, "DELETE", "", "Mcp-Session-Id", ids[1]); r.Status != 204 {
		t.Errorf("DELETE = %d", r.Status)
	}
	bridgetest.Eventually(t, "ended upstream", func() bool { return len(p.Requests("DELETE")) == 1 })
	if got := p.Requests("DELETE")[0].Header.Get("Mcp-Session-Id"); got != "up-2" {
		t.Errorf("DELETE of %s, want up-2: the other client's goes on", got)
	}
}

func TestS02RefusedHandshake(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	const no = `{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"]},"more":1}`
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, no)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	st := linkedTo(t, b)
	r := st.Send(t, "POST", legacytest.OddInitialize)
	if want := `{"jsonrpc":"2.0","id":"h","error":` + no + `}`; r.Body != want || r.Status != 200 || r.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize = %d %s %s\nwant %s and no session", r.Status, r.Header.Get("Mcp-Session-Id"), r.Body, want)
	}
	if st.front.Sessions() != 0 || b.Snapshot().State != upstream.Up {
		t.Errorf("%d sessions, server is %v; want none, and up: it answered", st.front.Sessions(), b.Snapshot().State)
	}
}

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
			b, peers := pipeBack(t, Options{})
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
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}))
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

// What a client tells reaches the server, and without a GET stream what the server
// tells waits for one.
func TestS02Notifications(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	peer := make(chan *legacytest.ConnPeer, 1)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		peer <- p
	}()
	g := st.Enter(t, "2025-11-25")
	p := <-peer
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
	b, peers := pipeBack(t, Options{})
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

// A pipe on either side keeps the order, what surrounds answers included.
func TestS02PipeToPipe(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	sent := make(chan string, 32)
	pipe := st.front.OpenConn(func(msg []byte) error { sent <- string(msg); return nil }, mcp.Share{Principal: "ada"})
	t.Cleanup(pipe.Close)
	serve := legacytest.Sender(t, pipe)
	want := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if got := <-sent; got != text {
				t.Errorf("sent %s\nwant %s", got, text)
			}
		}
	}
	early, late := `{"jsonrpc":"2.0","method":"notifications/early"}`, `{"jsonrpc":"2.0","method":"notifications/late"}`
	serve(legacytest.OddInitialize)
	p := <-peers
	m := p.Want("initialize")
	p.Write("%s", early)
	p.Result(m.ID, legacytest.OddResult)
	p.Write("%s", late)
	want(`{"jsonrpc":"2.0","id":"h","result":`+legacytest.OddResult+`}`, early, late)
	// Messages leave in the order in which they came, requests among them.
	for n := range 5 {
		serve(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"n":%[1]d}}`, n))
		serve(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n","params":{"n":%d}}`, n))
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
		want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/before","params":{"n":%d}}`, n),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%[1]d}`, n),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/after","params":{"n":%d}}`, n))
	}
	// The end of the pipe is the end of the server's connection.
	pipe.Close()
	if _, err := p.Conn.Read(); err == nil {
		t.Error("the server's connection is open after the client's has ended")
	}
}

func TestS02Cancellation(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	called, cancelled := make(chan struct{}, 2), make(chan string, 2)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		for _, answered := range []bool{true, false} {
			m := p.Want("tools/call")
			called <- struct{}{}
			c := p.Want("notifications/cancelled")
			cancelled <- strings.ReplaceAll(string(c.Text), `"requestId":`+m.ID.String(), `"requestId":THAT`)
			if answered {
				p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"isError":true}}`, m.ID)
			}
		}
	}()
	g := st.Enter(t, "2025-06-18")
	for _, c := range []struct{ name, answer string }{
		{"answered all the same", `{"jsonrpc":"2.0","id":"c","result":{"isError":true}}`},
		{"not answered", ""}, // but ended
	} {
		t.Run("S-02 "+c.name, func(t *testing.T) {
			got := make(chan legacytest.Reply, 1)
			go func() { got <- g.Post(t, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`) }()
			<-called
			if r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"bored","x":1}}`); r.Status != 202 {
				t.Errorf("cancellation = %d %s", r.Status, r.Body)
			}
			if text := <-cancelled; text != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":THAT,"reason":"bored","x":1}}` {
				t.Errorf("the server got %s", text)
			}
			r := <-got
			answer := r.Body[max(0, strings.Index(r.Body, "{")):] // a stream by now, maybe
			if c.answer != answer && (c.answer != "" || strings.Contains(r.Body, "jsonrpc")) {
				t.Errorf("call = %d %q, want %q", r.Status, r.Body, c.answer)
			}
		})
	}
}

// A session that its server has lost is lost to the client, too: what it stood for
// can't be had again.
func TestS02LostUpstream(t *testing.T) {
	t.Run("S-02 404 over HTTP", func(t *testing.T) {
		p := legacytest.NewHTTPServer(t)
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { w.WriteHeader(http.StatusNotFound) }
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
		st := linkedTo(t, b)
		g := st.Enter(t, "2025-11-25")
		get := g.Listen(t)
		if r := g.Call(t, "tools/call", `{}`); r.Status != 404 || r.Code() != -32001 {
			t.Errorf("call = %d %s, want 404", r.Status, r.Body)
		}
		get.Ends()
		if r := g.Call(t, "ping", `{}`); r.Status != 404 {
			t.Errorf("ping = %d %s, want 404", r.Status, r.Body)
		}
		if st.Enter(t, "2025-11-25").ID == g.ID {
			t.Error("the new session has the id of the old one")
		}
	})
	t.Run("S-02 a connection that ends", func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		st := linkedTo(t, b)
		go func() {
			p := <-peers
			p.Handshake(legacytest.Everything)
			p.Want("tools/call")
			_ = p.Conn.Close()
		}()
		g := st.Enter(t, "2025-11-25")
		if r := g.Call(t, "tools/call", `{}`); r.Status != 404 || r.Code() != -32001 {
			t.Errorf("call = %d %s, want 404", r.Status, r.Body)
		}
		if st.front.Sessions() != 0 {
			t.Error("the client's session goes on without the server's")
		}
	})
	t.Run("S-02 the client's connection", func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		st := linkedTo(t, b)
		sent := make(chan string, 4)
		pipe := st.front.OpenConn(func(msg []byte) error { sent <- string(msg); return nil }, mcp.Share{Principal: "ada"})
		t.Cleanup(pipe.Close)
		m, _ := wire.Parse([]byte(legacytest.OddInitialize), wire.Options{})
		pipe.Serve(&m)
		p := <-peers
		p.Result(p.Want("initialize").ID, legacytest.OddResult)
		<-sent
		_ = p.Conn.Close()
		<-pipe.Lost()
	})
}

// A session in use is never ended to make room, and the limits of the back hold.
func TestS02Limits(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	hold := make(chan struct{})
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	defer close(hold)
	d := &bridgetest.Metrics{}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Timeouts: upstream.Timeouts{Request: time.Millisecond, Max: 300 * time.Millisecond}, Metrics: d}, MaxSessions: 1})
	st := linkedTo(t, b)
	g := st.Enter(t, "2025-03-26")
	// One that has a stream open is in use, one that has not makes room.
	get := legacytest.Read(t, st.Open(t, "GET", "", "Mcp-Session-Id", g.ID, "Accept", "text/event-stream"))
	if r := st.Send(t, "POST", legacytest.OddInitialize); r.Code() != -32603 || !strings.Contains(r.Body, "limits.sessions") || d.Count("limit sessions") != 1 {
		t.Errorf("initialize past the limit = %d %s, want an error that names it", r.Status, r.Body)
	}
	get.Response.Body.Close()
	former := g.ID
	bridgetest.Eventually(t, "the other is idle", func() bool {
		r := st.Send(t, "POST", legacytest.Initialize("2025-03-26"))
		g = &legacytest.Session{Endpoint: st.Endpoint, ID: r.Header.Get("Mcp-Session-Id"), Revision: "2025-03-26"}
		return g.ID != ""
	})
	if r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", former); r.Status != 404 || st.Drops("limit client_sessions") != 1 {
		t.Errorf("ping in the session that made room = %d %s, want 404, counted", r.Status, r.Body)
	}
	bridgetest.Eventually(t, "it ended upstream", func() bool { return len(p.Requests("DELETE")) == 1 })
	begin := time.Now()
	r := g.Call(t, "tools/call", `{}`)
	if took := time.Since(begin); r.Code() != -32603 || !strings.Contains(r.Body, "timeouts.max") || d.Count("time limit") != 1 || took < 300*time.Millisecond {
		t.Errorf("call = %d %s after %v, want an error that names timeouts.max", r.Status, r.Body, took)
	}
	bridgetest.Eventually(t, "cancelled upstream", func() bool { return len(p.Requests("notifications/cancelled")) == 1 })
}

// An idle end is an end for the server, too.
func TestS02IdleEnd(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	st := newLinkedFront(t, func(o *front.Options) { o.Linker, o.Idle = b, 10*time.Millisecond })
	if r := st.Send(t, "POST", legacytest.Initialize("2025-03-26")); r.Status != http.StatusOK {
		t.Errorf("initialize = %d %s", r.Status, r.Body)
	}
	bridgetest.Eventually(t, "ended upstream", func() bool { return len(p.Requests("DELETE")) == 1 && st.front.Sessions() == 0 })
}

// Roots of the config stand for the client's.
func TestS02ConfiguredRoots(t *testing.T) {
	b, peers := pipeBack(t, Options{Roots: []byte(`[{"uri":"file:///a"}]`)})
	st := linkedTo(t, b)
	answer := make(chan string, 1)
	go func() {
		p := <-peers
		if params := p.Handshake(legacytest.Everything); !strings.Contains(params, `"roots":{}`) {
			t.Errorf("initialize = %s, want roots declared", params)
		}
		p.Write(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`)
		answer <- string(p.Read().Text)
	}()
	st.Enter(t, "2025-11-25")
	if got := <-answer; got != `{"jsonrpc":"2.0","id":5,"result":{"roots":[{"uri":"file:///a"}]}}` {
		t.Errorf("the server got %s", got)
	}
}

// A linkRecorder tells of the links that a Back opens.
type linkRecorder struct {
	*Back
	links chan<- mcp.Link
}

func (l linkRecorder) Link(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.Hearer) (mcp.Link, []byte, error) {
	link, answer, err := l.Back.Link(ctx, req, m, h)
	l.links <- link
	return link, answer, err
}

// Nothing is left of a session that ends with all under way.
func TestS02NothingIsLeft(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	links := make(chan mcp.Link, 1)
	st := linkedTo(t, linkRecorder{b, links})
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Want("tools/call")
		p.Write(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
	}()
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	st.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID)
	bridgetest.Eventually(t, "the session upstream ended", func() bool { return b.Snapshot().Sessions == 0 })
	r := (<-links).(*relay.Session)
	bridgetest.Eventually(t, "no call is left", func() bool {
		left := 0
		r.Link().Calls.Each(func(*upstream.Call) { left++ })
		return left == 0
	})
	if got, ok := f.Next(); !ok || !strings.Contains(got, "-32001") {
		t.Errorf("event after the end = %q, %v; want an error", got, ok)
	}
	f.Ends()
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	if err := st.front.Close(ctx); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// What is hidden crosses in neither direction of a session that is passed on, and all
// else has its bytes.
func TestT32HiddenInLinkedSessions(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	welcome := strings.Replace(legacytest.OddResult, `"new":`, `"extensions":{"com.example/x":{},"com.example/y":{"n":1.0}},"experimental":{"e":{}},"new":`, 1)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, welcome) }
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL, HideExtensions: []string{"com.example/x", "e"}}}))
	shown := strings.Replace(legacytest.OddResult, `"new":`, `"extensions":{"com.example/y":{"n":1.0}},"new":`, 1)
	if r, want := st.Send(t, "POST", legacytest.OddInitialize), `{"jsonrpc":"2.0","id":"h","result":`+shown+`}`; r.Body != want {
		t.Errorf("initialize = %s\nwant         %s", r.Body, want)
	}
	want := strings.Replace(strings.Replace(legacytest.OddInitialize, `"h"`, "1", 1), `"experimental":{"e":{}},`, "", 1)
	if got := p.Requests("initialize")[0].Body; got != want {
		t.Errorf("the server got %s\nwant         %s", got, want)
	}
}
