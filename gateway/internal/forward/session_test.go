package forward

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// elsewhereSession is the id of a session that a replica has opened which is not there any more.
const elsewhereSession = "1YYYYYYYY-x"

// alone tests one replica in a bubble, which has heard that there is no other.
func alone(t *testing.T, test func(t *testing.T, broker *replicastest.Broker, r *replica), options ...option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		broker := replicastest.New()
		r := newReplica(t, broker, "AAAAAAAA", false, options...)
		time.Sleep(2 * replicas.Heartbeat)
		synctest.Wait()
		test(t, broker, r)
	})
}

// Only requests of a legacy session that another replica has opened are forwarded for it.
func TestSessionsThatAreForwarded(t *testing.T) {
	_, all := newReplicas(t, 2)
	here, other := all[0], all[1]
	other.adopt(sessionAt(other))
	here.adopt(sessionAt(here))
	withVersion := ofSession(sessionAt(other))
	withVersion[http.CanonicalHeaderKey(spec.HeaderProtocolVersion)] = []string{string(spec.Rev20260728)}
	withOwn := withVersion.Clone()
	withOwn.Set(spec.HeaderSession, sessionAt(here))
	withEnvelope := `{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	for _, tt := range []struct {
		what string
		req  *http.Request
		by   *replica // nil: no such session here
	}{
		{"a message", request(t, "POST", "/mcp/docs", listTools, ofSession(sessionAt(other))), other},
		{"an end", request(t, "DELETE", "/mcp/docs", "", ofSession(sessionAt(other))), other},
		{"a message of HTTP+SSE", request(t, "POST", "/message/docs?sessionId="+sessionAt(other), listTools, nil), other},
		{"a message of its own", request(t, "POST", "/mcp/docs", listTools, ofSession(sessionAt(here))), here},
		{"a message without a session", request(t, "POST", "/mcp/docs", listTools, nil), here},
		{"Q-01 a message with a modern header", request(t, "POST", "/mcp/docs", listTools, withVersion), other},
		{"Q-01 a stream with a modern header", request(t, "GET", "/mcp/docs", "", withVersion), other},
		{"Q-01 a message with a modern header in a session of its own", request(t, "POST", "/mcp/docs", listTools, withOwn), here},
		{"a modern message with the header of a session", request(t, "POST", "/mcp/docs", withEnvelope, withVersion), nil},
		{"a session that names no replica", request(t, "POST", "/mcp/docs", listTools, ofSession("other")), nil},
	} {
		got := here.ask(tt.req)
		switch {
		case tt.by == nil && (got.by != here.instance || got.status != http.StatusNotFound):
			t.Errorf("%s = %+v, want no such session here", tt.what, got)
		case tt.by != nil && (got.by != tt.by.instance || got.status != http.StatusOK):
			t.Errorf("%s = %+v, want it served by %s", tt.what, got, tt.by.instance)
		}
	}
}

// sendPeer sends a request of a session as another replica does, on behalf of alice.
func (r *replica) sendPeer(to *replica, body string, h http.Header) (status int, by string) {
	r.t.Helper()
	rt := r.peers.RoundTripper(to.peers.Self(), func(*http.Request) mcp.Sender {
		return mcp.Sender{Share: mcp.Share{Principal: alice}, Identity: &mcp.Identity{Principal: alice}}
	})
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://localhost"+Streamable.Path(serverName), strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = h
	res, err := rt.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode, res.Header.Get(servedBy)
}

// What was forwarded is not forwarded again, whatever it names: replicas that disagree would
// send it in a circle.
func TestForwardOnce(t *testing.T) {
	_, all := newReplicas(t, 3)
	a, b, c := all[0], all[1], all[2]
	c.adopt(sessionAt(c))
	if status, by := b.sendPeer(a, listTools, ofSession(sessionAt(c))); status != http.StatusNotFound || by != a.instance {
		t.Errorf("the session of a third = %d by %q, want 404", status, by)
	}
	wantServed(t, "the session itself", b.send(http.MethodPost, listTools, ofSession(sessionAt(c))), c, listTools)
	status, by := b.sendPeer(a, "", http.Header{})
	if status != http.StatusOK || by != a.instance {
		t.Errorf("no session = %d by %q, want it served", status, by)
	}
	req := request(t, http.MethodPost, "/message/docs?sessionId="+sessionAt(c), listTools, nil)
	w := httptest.NewRecorder()
	a.serve(w, req, Messages, mcp.Sender{Share: mcp.Share{Principal: alice}, Via: b.instance}, false)
	if by := w.Header().Get(servedBy); by != a.instance {
		t.Errorf("a message of HTTP+SSE for a third was served by %q, want %s", by, a.instance)
	}
}

// heldElsewhere are requests about what a replica holds that is not there: a call that waits for input, and a task.
var heldElsewhere = []string{
	`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","requestState":"1.YYYYYYYY.sealed"}}`,
	`{"jsonrpc":"2.0","id":9,"method":"tasks/get","params":{"taskId":"1.YYYYYYYY.task"}}`,
}

// A replica that has not heard of the others answers for its own sessions alone: the client of
// another one is to come back.
func TestForwardNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := replicastest.New()
		broker.SetAway(true)
		r := newReplica(t, broker, "AAAAAAAA", false)
		got := r.send(http.MethodPost, listTools, ofSession(elsewhereSession))
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"id":9`) || !strings.Contains(got.body, "does not know the others yet") {
			t.Errorf("a session of a replica that is not known yet = %+v, want 503", got)
		}
		r.adopt(sessionAt(r))
		wantServed(t, "its own", r.send(http.MethodPost, listTools, ofSession(sessionAt(r))), r, listTools)
		for _, held := range heldElsewhere {
			if got := r.send(http.MethodPost, held, modern); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"id":9`) || !strings.Contains(got.body, "does not know the others yet") {
				t.Errorf("%s, of a replica that is not known yet = %+v, want 503", held, got)
			}
		}
		broker.SetAway(false)
		time.Sleep(5 * replicas.Heartbeat)
		for _, held := range heldElsewhere {
			wantServed(t, "what a replica holds that is gone", r.send(http.MethodPost, held, modern), r, held)
		}
		if got := r.send(http.MethodPost, listTools, ofSession(elsewhereSession)); got.status != http.StatusNotFound || got.by != r.instance {
			t.Errorf("a session of a replica that is gone = %+v, want no such session", got)
		}
	})
}

// The engine answers a replica that has heard nothing of it before, and has forgotten all: the others have a
// moment to tell it again, and until then nobody is told that what they hold is gone.
func TestForwardNotGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := replicastest.New()
		broker.SetAway(true)
		r, other := newReplica(t, broker, "AAAAAAAA", false), broker.Unjoined(t)
		if err := other.Member.Join(t.Context(), replicas.Replica{Instance: "YYYYYYYY", Addr: "127.0.0.1:1", Version: "test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * replicas.Heartbeat)
		other.SetAway(true)
		broker.SetAway(false)
		heard := func() bool { return !r.peers.View().Heard.IsZero() }
		lives := func() bool { _, lives := r.peers.View().Member("YYYYYYYY"); return lives }
		for begun := time.Now(); !lives() && time.Since(begun) < 10*time.Second; time.Sleep(replicas.Heartbeat / 10) {
			answers := []answer{
				r.send(http.MethodPost, listTools, ofSession(elsewhereSession)),
				r.ask(request(t, http.MethodPost, "/message/docs?sessionId="+elsewhereSession, listTools, nil)),
			}
			for _, held := range heldElsewhere {
				answers = append(answers, r.send(http.MethodPost, held, modern))
			}
			for i, got := range answers {
				if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
					t.Fatalf("answer %d, %v after the engine is back (heard: %v) = %+v, want 503", i, time.Since(begun), heard(), got)
				}
			}
			if heard() {
				time.AfterFunc(replicas.Heartbeat/2, func() { other.SetAway(false) })
			}
		}
		if !lives() {
			t.Fatal("the other replica was not heard")
		}
		if err := other.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * replicas.Heartbeat)
		if got := r.send(http.MethodPost, listTools, ofSession(elsewhereSession)); got.status != http.StatusNotFound {
			t.Errorf("once it has left = %+v, want no such session", got)
		}
	})
}

// What a client of a group asks for goes on elsewhere, and is to be tried again, too.
func TestMembersNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := replicastest.New()
		broker.SetAway(true)
		r := newReplica(t, broker, "AAAAAAAA", false, stateful, func(_ *replicas.Replica, o *ServerOptions) { o.Remote = func(replicas.Replica) Remote { return nil } })
		r.era.Store(uint32(spec.Legacy))
		for method, params := range map[string]string{spec.MethodToolsCall: `{"requestState":"1.YYYYYYYY.sealed"}`, spec.MethodTaskGet: `{"taskId":"1.YYYYYYYY.task"}`} {
			req := &mcp.Request{Method: method, Params: []byte(params), Profile: mcp.Profile{Principal: alice}, Passage: &mcp.Passage{Group: "all"}}
			_, err := r.server.Serve(t.Context(), req, nil, handlerFunc(nil))
			if err == nil || !mcp.MayTryLater(err) || !strings.Contains(err.Error(), "does not know the others yet") {
				t.Errorf("%s = %v, want that it is tried again", method, err)
			}
		}
	})
}

// While nobody can say who goes on with a session, the engine is waited for; then its client is to
// come back.
func TestSessionThatNobodyCanFind(t *testing.T) {
	alone(t, func(t *testing.T, broker *replicastest.Broker, r *replica) {
		broker.SetAway(true)
		begun := time.Now()
		got := r.send(http.MethodPost, listTools, ofSession(elsewhereSession))
		if took := time.Since(begun); took < 10*time.Second {
			t.Errorf("answered after %v, want the engine waited for", took)
		}
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, handover.ErrUnknown.Error()) {
			t.Errorf("= %+v, want 503", got)
		}
		if !strings.Contains(r.logs.String(), "session not found") {
			t.Errorf("the log: %s", r.logs.String())
		}
	})
}

// A message of HTTP+SSE ends with its replica: the client is told to open the stream again.
func TestMessageOfGoneReplica(t *testing.T) {
	_, all := newReplicas(t, 2)
	all[1].kill()
	got := all[0].ask(request(t, http.MethodPost, "/message/docs?sessionId="+sessionAt(all[1]), listTools, nil))
	if got.status != http.StatusNotFound || !strings.Contains(got.body, "GET /sse/docs again") || !strings.Contains(got.body, "-32001") {
		t.Errorf("= %+v, want 404 and what to do", got)
	}
}

// A session is not taken out while one of its requests is served here, one of this replica itself
// not before a drain has begun either: it may begin while the request is read. Nor is it while a GET is
// about to open its stream, which would find no session.
func TestSessionStaysWhileItIsServed(t *testing.T) {
	alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
		for _, id := range []string{elsewhereSession, sessionAt(r)} {
			r.adopt(id)
			for _, via := range []string{"", "BBBBBBBB"} {
				stays(t, r, id, http.MethodPost, via)
				stays(t, r, id, http.MethodGet, via)
			}
			r.front.Detach(1, true)[0].Adopted("BBBBBBBB")
		}
	})
}

func stays(t *testing.T, r *replica, id, method, via string) {
	t.Helper()
	q := &Request{W: httptest.NewRecorder(), R: request(t, method, "/mcp/docs", "", ofSession(id)), At: Streamable,
		Read:   func() (*wire.Message, spec.Era, bool) { return nil, spec.Legacy, true },
		Sender: mcp.Sender{Share: mcp.Share{Principal: alice}, Via: via}}
	release, answered := r.server.Elsewhere(q)
	if answered {
		t.Errorf("%s of %s was answered elsewhere", method, id)
	}
	out := r.front.Detach(1, true)
	if len(out) > 0 {
		t.Errorf("%d sessions can be taken out during a %s of %s, want that it stays", len(out), method, id)
	}
	for _, d := range out {
		d.Restore()
	}
	release()
	if out = r.front.Detach(1, true); len(out) != 1 {
		t.Fatalf("after the %s: %d sessions can be taken out, want 1", method, len(out))
	}
	out[0].Restore()
}

// A request that comes while its session is handed over waits for what becomes of it.
func TestRequestDuringHandover(t *testing.T) {
	for _, tt := range []struct {
		what   string
		moved  bool
		to     string // who adopts the session; empty: nobody
		status int
		text   string
	}{
		{"nobody has taken it", false, "", 200, listTools},
		{"who has taken it is gone", false, "ZZZZZZZZ", 404, "initialize anew"},
		{"it has moved twice at once", true, "ZZZZZZZZ", 503, "being handed over; try again"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
				r.adopt(elsewhereSession)
				d := r.front.Detach(1, true)[0]
				w, done := httptest.NewRecorder(), make(chan struct{})
				go func() {
					defer close(done)
					r.serve(w, request(t, http.MethodPost, "/mcp/docs", listTools, ofSession(elsewhereSession)), Streamable, mcp.Sender{Share: mcp.Share{Principal: alice}, Via: "BBBBBBBB"}, tt.moved)
				}()
				synctest.Wait()
				select {
				case <-done:
					t.Fatalf("it was answered with %d %s before the session is anywhere", w.Code, w.Body)
				default:
				}
				if tt.to == "" {
					d.Restore()
				} else {
					d.Adopted(tt.to)
				}
				<-done
				if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) {
					t.Errorf("= %d %s, want %d with %s", w.Code, w.Body, tt.status, tt.text)
				}
			})
		})
	}
}

// A client that leaves while its session is handed over is waited for no longer.
func TestClientLeavesDuringHandover(t *testing.T) {
	alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
		r.adopt(elsewhereSession)
		d := r.front.Detach(1, true)[0]
		defer d.Restore()
		ctx, leave := context.WithCancelCause(t.Context())
		w, done := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(done)
			r.ServeHTTP(w, request(t, http.MethodPost, "/mcp/docs", listTools, ofSession(elsewhereSession)).WithContext(ctx))
		}()
		synctest.Wait()
		leave(errors.New("the client has left"))
		<-done
		if w.Body.Len() > 0 || w.Header().Get(servedBy) != "" {
			t.Errorf("it was answered with %d %s by %q", w.Code, w.Body, w.Header().Get(servedBy))
		}
	})
}

// drain tells all that a replica ends, and waits until they know.
func (r *replica) drain(all []*replica) {
	r.t.Helper()
	self := r.peers.Self()
	self.Draining = true
	r.engine.Update(self)
	for _, other := range all {
		bridgetest.Eventually(r.t, "the replica drains", func() bool {
			m, lives := other.peers.View().Member(r.instance)
			return lives && m.Draining
		})
	}
}

// holderAmong returns the one replica that has a session.
func holderAmong(t *testing.T, session string, all ...*replica) (holder, other *replica) {
	t.Helper()
	bridgetest.Eventually(t, "the session at another replica", func() bool {
		for i, r := range all {
			if r.has(session) {
				holder, other = r, all[(i+1)%len(all)]
			}
		}
		return holder != nil
	})
	return holder, other
}

// handedOver returns three replicas, the first of which drains and has handed a session over: to heir, not
// to other.
func handedOver(t *testing.T) (broker *replicastest.Broker, all []*replica, session string, heir, other *replica) {
	t.Helper()
	broker, all = newReplicas(t, 3)
	a := all[0]
	session = sessionAt(a)
	a.adopt(session)
	a.drain(all)
	a.group.Drain([]*Server{a.server})
	heir, other = holderAmong(t, session, all[1], all[2])
	bridgetest.Eventually(t, "the receipt of the heir", func() bool {
		release, moved := a.front.Hold(session, alice)
		if release != nil {
			release()
		}
		return moved != nil && moved.Wait(t.Context()) != ""
	})
	return broker, all, session, heir, other
}

// A session that was handed on twice is found by the replica that it was handed over from first,
// which has not ended yet.
func TestSessionIsHandedOnTwice(t *testing.T) {
	_, all, session, heir, other := handedOver(t)
	a := all[0]
	heir.drain(all)
	heir.group.Drain([]*Server{heir.server})
	bridgetest.Eventually(t, "the session at the last replica", func() bool { return other.has(session) })
	heir.group.AwaitDrain(t.Context())
	if err := heir.engine.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir.kill()
	bridgetest.Eventually(t, "the heir is gone", func() bool { _, lives := a.peers.View().Member(heir.instance); return !lives })
	wantServed(t, "by the first replica", a.send(http.MethodPost, listTools, ofSession(session)), other, listTools)
}

// A replica that hands its sessions over and ends while the engine is away leaves nobody to say where
// they are: the engine is waited for, and no client is told that its session is gone.
func TestDrainedSessionIsFoundOnceTheEngineIsBack(t *testing.T) {
	for _, ending := range []bool{true, false} {
		broker, all, session, heir, other := handedOver(t)
		a := all[0]
		bridgetest.Eventually(t, "its place in the engine", func() bool {
			at, err := heir.group.drain.group.Find(t.Context(), session, false)
			return err == nil && at == heir.instance
		})
		if !ending { // the others still take it for one that goes on
			self := a.peers.Self()
			self.Draining = false
			a.engine.Update(self)
			know(t, all)
		}
		broker.SetAway(true)
		a.kill()
		back := time.AfterFunc(300*time.Millisecond, func() { broker.SetAway(false) })
		defer back.Stop()
		wantServed(t, "once the engine is back", other.send(http.MethodPost, listTools, ofSession(session)), heir, listTools)
	}
}

// The sessions of a server that keeps something of them end with their replica: nobody has to be asked.
func TestSessionOfALegacyServerEndsWithItsReplica(t *testing.T) {
	broker, all := newReplicas(t, 2)
	a, other := all[0], all[1]
	for _, r := range all {
		r.era.Store(uint32(spec.Legacy))
	}
	session := sessionAt(a)
	a.adopt(session)
	broker.SetAway(true)
	a.kill()
	begun := time.Now()
	got := other.send(http.MethodPost, listTools, ofSession(session))
	if took := time.Since(begun); got.status != http.StatusNotFound || !strings.Contains(got.body, "initialize anew") || took > 10*time.Second {
		t.Errorf("= %+v after %v, want 404 without the engine", got, took)
	}
}

// A session goes on when its replica drains: whichever replica is asked, also the one that ends,
// and once that is gone.
func TestDrainedSessionIsServedByItsHeir(t *testing.T) {
	_, all := newReplicas(t, 3)
	a := all[0]
	session := sessionAt(a)
	a.adopt(session)
	a.drain(all)
	for _, r := range all {
		wantServed(t, "while it has not moved", r.send(http.MethodPost, listTools, ofSession(session)), a, listTools)
	}
	a.group.Drain([]*Server{a.server})
	a.group.Drain(nil) // begins once
	heir, other := holderAmong(t, session, all[1], all[2])
	for _, r := range all {
		wantServed(t, "while its replica drains", r.send(http.MethodPost, listTools, ofSession(session)), heir, listTools)
	}
	a.group.AwaitDrain(t.Context())
	if err := a.engine.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.kill()
	for _, r := range []*replica{heir, other} {
		bridgetest.Eventually(t, "the replica is gone", func() bool { _, lives := r.peers.View().Member(a.instance); return !lives })
		wantServed(t, "after its replica", r.send(http.MethodPost, listTools, ofSession(session)), heir, listTools)
	}
	heir.kill()
	if got := other.send(http.MethodPost, listTools, ofSession(session)); got.status != http.StatusNotFound || !strings.Contains(got.body, "initialize anew") {
		t.Errorf("after its heir = %+v, want 404", got)
	}
}

// Sessions of a legacy server have a state there: they are not handed over, and draining ends.
func TestDrainLeavesSessionsOfLegacyServers(t *testing.T) {
	_, all := newReplicas(t, 2)
	a := all[0]
	a.era.Store(uint32(spec.Legacy))
	a.adopt(sessionAt(a))
	a.drain(all)
	a.group.Drain([]*Server{a.server})
	a.group.AwaitDrain(t.Context())
	if !a.has(sessionAt(a)) || all[1].has(sessionAt(a)) {
		t.Errorf("the session was handed over")
	}
}
