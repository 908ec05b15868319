package router

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// wantFrom wants a result of one of the servers of newStateful.
func (l *line) wantFrom(id, server string) {
	l.t.Helper()
	l.wantAnswer(modernBody(id, "tools/call", `"name":"t","arguments":{}`), `"id":`+id+`,"result"`, `"of-`+server)
}

// wantAnswer wants every part in the answer to a request.
func (l *line) wantAnswer(body string, parts ...string) {
	l.t.Helper()
	answer := l.ask(body)
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			l.t.Errorf("the answer to %.200s is %s, want %s in it", body, answer, part)
		}
	}
}

// A WebSocket is served by the replica that serves its principal, whichever one it is opened at,
// for clients of both eras.
func TestOneReplicaServesWebSockets(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	by := d.onlyServer(t, "before", nil)
	for _, r := range d.all {
		l := r.socket(t)
		l.wantFrom("1", by)
		l.wantAnswer(initializeText, `"id":0,"result":`)
		l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		l.wantAnswer(listToolsBody, `"id":7,"result"`, `"of-`+by)
		l.wantAnswer(modernBody("2", "ping", "")+strings.Repeat(" ", 200_000), `"id":2`) // more than is passed on at once
	}
	holder := d.all[int(by[0]-'0')]
	if n := holder.g.Snapshot().Sockets; n != 3 {
		t.Errorf("the holder has %d WebSockets, want all 3", n)
	}
}

// other returns a replica that does not serve, and the one that does.
func (d *deployment) other(t *testing.T) (other, holder *replica, by string) {
	t.Helper()
	by = d.onlyServer(t, "before", nil)
	at := int(by[0] - '0')
	return d.all[(at+1)%len(d.all)], d.all[at], by
}

// wantNoSockets wants all WebSockets gone, and their names.
func (d *deployment) wantNoSockets(t *testing.T, all ...*replica) {
	t.Helper()
	for _, r := range all {
		eventually(t, func() bool {
			return r.g.sockets.Len()+r.g.sockets.Lent() == 0
		})
	}
}

// The client leaves: nothing is left at either replica.
func TestCarriedClientLeaves(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	other, holder, by := d.other(t)
	l := other.socket(t)
	l.wantFrom("1", by)
	_ = l.conn.Close()
	d.wantNoSockets(t, other, holder)
	ws, _ := other.raw(t, nil)
	_ = ws.NetConn().Close() // without a close frame
	d.wantNoSockets(t, other, holder)
}

// The replica that serves a WebSocket ends: the client hears why.
func TestCarriedHolderEnds(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	other, holder, by := d.other(t)
	l := other.socket(t)
	l.wantFrom("1", by)
	if err := holder.g.EndConnections(t.Context()); err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
	if got, want := l.closed(), (transport.CloseError{Code: 1001, Reason: goingAwayText}); got != want {
		t.Errorf("closed with %+v, want %+v", got, want)
	}
	d.wantNoSockets(t, other, holder)
}

// newSlow returns two replicas of a server that reads resources once it is told to. asked says
// how many it was asked for.
func newSlow(t *testing.T) (d *deployment, asked func() int, answer func()) {
	t.Helper()
	var servers []*modernPeer
	hold := make(chan struct{})
	d = newStatefulOf(t, 2, nil, func(p *modernPeer) {
		servers = append(servers, p)
		p.hold = map[string]chan struct{}{"resources/read": hold}
		p.answers["resources/read"] = `{"resultType":"complete","contents":[{"uri":"file:///slow","text":"slow"}],"ttlMs":0,"cacheScope":"private"}`
	})
	answer = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(answer)
	return d, func() (n int) {
		for _, p := range servers {
			n += len(p.sent("resources/read"))
		}
		return n
	}, answer
}

// The replica that a WebSocket was opened at ends: calls in flight end before, at the one that
// serves them.
func TestCarryingReplicaEnds(t *testing.T) {
	t.Parallel()
	d, asked, answer := newSlow(t)
	other, holder, _ := d.other(t)
	l := other.socket(t)
	l.send(modernBody("1", "resources/read", `"uri":"file:///slow"`))
	eventually(t, func() bool { return asked() == 1 })
	done := make(chan error, 1)
	go func() { done <- other.g.EndConnections(context.Background()) }()
	time.Sleep(100 * time.Millisecond) // the holder hears of it
	answer()
	l.want(`"id":1,"result"`, "slow")
	if got, want := l.closed(), (transport.CloseError{Code: 1001, Reason: goingAwayText}); got != want {
		t.Errorf("closed with %+v, want %+v", got, want)
	}
	if err := <-done; err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
	d.wantNoSockets(t, other, holder)
	holder.socket(t).wantFrom("2", d.onlyServer(t, "after", nil))
}

// So do those of an HTTP+SSE stream.
func TestCarryingReplicaEndsEventStreams(t *testing.T) {
	t.Parallel()
	d, asked, answer := newSlow(t)
	other, holder, _ := d.other(t)
	c := other.openEvents(t, "/sse/peer", nil)
	c.r = &holder.rig // where all messages are posted
	c.initialize("2024-11-05", `{}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///slow"}}`)
	eventually(t, func() bool { return asked() == 1 })
	done := make(chan error, 1)
	go func() { done <- other.g.EndConnections(context.Background()) }()
	time.Sleep(100 * time.Millisecond) // the holder hears of it
	answer()
	c.want(`"id":1,"result"`, "slow")
	if typ, data := c.event(); typ != "" {
		t.Errorf("the stream goes on with %s %s", typ, data)
	}
	if err := <-done; err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
}

// The holder dies: the client's connection ends at once, and the next one is served elsewhere.
func TestCarriedHolderDies(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	other, holder, by := d.other(t)
	l := other.socket(t)
	l.wantFrom("1", by)
	holder.conns.kill()
	holder.engine.SetFrozen(true)
	t.Cleanup(func() { holder.engine.SetFrozen(false) })
	begin := time.Now()
	for range l.read {
		t.Error("the dead replica has answered")
	}
	if took := time.Since(begin); took >= replicas.MemberTTL-replicas.Heartbeat { // when others may take it for dead
		t.Errorf("the client was told after %v", took)
	}
	eventually(t, func() bool { // on a busy machine the first ones hear that another replica is about to take over
		ws, _ := other.raw(t, nil)
		return ws != nil
	})
	again := other.socket(t)
	again.send(modernBody("2", "tools/call", `"name":"t","arguments":{}`))
	again.want(`"id":2,"result"`)
}

// What a replica refuses, the client is told by it.
func TestCarriedRefused(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, func(o *Options) { o.bound("websockets", 1) })
	other, holder, by := d.other(t)
	holder.socket(t).wantFrom("1", by)
	ws, resp := other.raw(t, nil)
	if ws != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a WebSocket beyond the holder's limit = %d %v", resp.StatusCode, resp.Header)
	}
	d.wantNoSockets(t, other)
}
