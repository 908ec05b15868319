package router

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// newLacking returns three replicas that have the server, but for the last one, and tells each of
// what the others have.
func newLacking(t *testing.T, change func(*Options)) (all []*replica, lacking *replica) {
	t.Helper()
	made := 0
	all = newReplicas(t, 3, func(o *Options) {
		if made++; made == 3 {
			o.Servers[0].Name = "another"
		}
		if change != nil {
			change(o)
		}
	})
	for i, r := range all {
		r.tell([]string{"peer", "peer", "another"}[i])
	}
	for _, r := range all {
		eventually(t, func() bool {
			return !slices.ContainsFunc(r.peers.View().Members, func(m replicas.Replica) bool { return m.Servers == "" })
		})
	}
	return all, all[2]
}

// tell tells the others that this replica has servers.
func (r *replica) tell(servers ...string) {
	self := r.peers.Self()
	self.Servers = replicas.ServersOf(slices.Values(servers))
	r.engine.Update(self)
}

// A session is opened, used and ended at a replica that does not have the server.
func TestAbsentServerSession(t *testing.T) {
	t.Parallel()
	all, lacking := newLacking(t, nil)
	session := lacking.initialize(t)
	all[0].peer.answer("tools/list", `{"tools":[]}`)
	for i, r := range all {
		if got := r.send(t, http.MethodPost, listTools, sessionHeaders(session)); got.status != 200 {
			t.Errorf("tools/list at %d = %+v", i, got)
		}
	}
	res := lacking.open(t, http.MethodGet, "", sessionHeaders(session))
	defer res.Body.Close()
	eventually(t, all[0].peer.isListening)
	all[0].peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	events := bufio.NewReader(res.Body)
	if _, data := nextEvent(t, events); !strings.Contains(data, "list_changed") {
		t.Errorf("event %q", data)
	}
	if got := lacking.send(t, http.MethodDelete, "", sessionHeaders(session)); got.status != http.StatusNoContent {
		t.Errorf("DELETE = %+v", got)
	}
	if rest, err := io.ReadAll(events); err != nil {
		t.Errorf("the rest of the stream: %q, %v", rest, err)
	}
	if got := lacking.send(t, http.MethodPost, listTools, sessionHeaders(session)); got.status != http.StatusNotFound || got.code() != -32001 {
		t.Errorf("after its end: %+v", got)
	}
	lacking.eventually(t, "no request is in flight", func() bool { return lacking.g.inflight.Len() == 0 }) // a moment after its response
}

// So are calls of modern clients, those that wait for input and listen streams included. Streams
// end in order with the replica that passes them on.
func TestAbsentServerCalls(t *testing.T) {
	t.Parallel()
	all, lacking := newLacking(t, nil)
	a := all[0]
	a.peer.handle["tools/call"] = func(c *peerCall) string {
		return say(c.ask("elicitation/create", `{"message":"1"}`))
	}
	for i, from := range all {
		rd := from.tool(t, "1", allQuestions, "").round(t)
		if got := lacking.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept})); got.status != 200 || !strings.Contains(got.body, `"id":2`) {
			t.Errorf("the answer to what was asked at %d = %+v", i, got)
		}
	}
	f := lacking.listen(t, "3", `{"toolsListChanged":true}`)
	if got := f.next(); !strings.Contains(got, "acknowledged") {
		t.Fatalf("listen = %s", got)
	}
	eventually(t, a.peer.isListening)
	a.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	if got := f.next(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("the change = %s", got)
	}
	lacking.g.EndStreams()
	if rest, err := io.ReadAll(f.r); err != nil {
		t.Errorf("the stream's end: %q, %v", rest, err)
	}
}

// HTTP+SSE and WebSockets are opened for it, too.
func TestAbsentServerConnections(t *testing.T) {
	t.Parallel()
	all, lacking := newLacking(t, nil)
	all[0].peer.answer("tools/list", `{"tools":[]}`)
	c := lacking.openEvents(t, "/sse/peer", http.Header{"X-Forwarded-Prefix": {"/api"}})
	if !strings.HasPrefix(c.messages, "/api/message/peer?") {
		t.Errorf("the endpoint is %s", c.messages)
	}
	c.messages = strings.TrimPrefix(c.messages, "/api")
	c.initialize("2024-11-05", `{}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.want(`"id":1,"result"`)
	l := lacking.socket(t)
	l.send(initializeText)
	l.want(`"id":0,"result":`)
	if n := lacking.g.sockets.Len(); n != 1 {
		t.Errorf("%d WebSockets are counted, want 1", n)
	}
	_ = l.conn.Close()
	eventually(t, func() bool { return lacking.g.sockets.Len() == 0 })
}

// Who a client is, the replica finds out that has the server.
func TestAbsentServerAuthentication(t *testing.T) {
	t.Parallel()
	all, lacking := newLacking(t, withTokens)
	all[0].peer.answer("tools/list", `{"tools":[]}`)
	if got := lacking.send(t, http.MethodPost, initializeBody, sessionHeaders("")); got.status != http.StatusUnauthorized {
		t.Errorf("without a token = %+v", got)
	}
	session := lacking.openAs(t, "alice")
	for i, r := range all {
		if got := r.send(t, http.MethodPost, listTools, as("bob", sessionHeaders(session))); got.status != http.StatusNotFound || got.code() != -32001 {
			t.Errorf("at %d with the session of another = %+v", i, got)
		}
		if got := r.send(t, http.MethodPost, listTools, as("alice", sessionHeaders(session))); got.status != 200 {
			t.Errorf("at %d = %+v", i, got)
		}
	}
}

// A server that no living replica has is unknown, as is one that they have lost since they told of
// it.
func TestAbsentServerNowhere(t *testing.T) {
	t.Parallel()
	all, lacking := newLacking(t, nil)
	for _, path := range []string{"/mcp/nothing", "/sse/nothing", "/message/nothing"} {
		if got := lacking.sendTo(t, http.MethodPost, path, initializeBody, "", sessionHeaders("")); got.status != http.StatusNotFound || !strings.Contains(got.body, `[another]`) {
			t.Errorf("%s = %+v", path, got)
		}
	}
	all[0].tell("peer", "lost")
	all[1].tell("peer", "lost")
	eventually(t, func() bool {
		n := 0
		for _, m := range lacking.peers.View().Members {
			if m.Servers.Has("lost") {
				n++
			}
		}
		return n == 2
	})
	if got := lacking.sendTo(t, http.MethodPost, "/mcp/lost", initializeBody, "", sessionHeaders("")); got.status != http.StatusNotFound || !strings.Contains(got.body, `no server named \"lost\"`) {
		t.Errorf("a server that was lost = %+v", got)
	}
}
