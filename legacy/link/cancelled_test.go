package link

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const grace = 250 * time.Millisecond

// A left is a call whose caller has left, at the moment when it was made.
type left struct {
	over    chan time.Duration // gets how long Outlast took
	overdue atomic.Int32       // how often Outlast has said so
}

// leaveCall makes a call, which is cancelled. asks says that the server may ask for it.
func leaveCall(t *testing.T, r *rig, asks bool) *left {
	t.Helper()
	l := &left{over: make(chan time.Duration, 1)}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	c := &Call{Call: upstream.Call{Method: spec.MethodToolsCall}}
	own := c.Begin(ctx)
	if err := r.Calls.Add(c); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the session
		err := r.Do(own, c, wire.AppendRequest(nil, wire.NumberID(c.ID), c.Method, []byte(`{}`), nil))
		r.Calls.ExpectLate(c)
		_ = r.Abandon(own, c, err)
		begun := time.Now()
		Outlast(r.Link, c, grace, asks, func() { l.overdue.Add(1) })
		l.over <- time.Since(begun)
	}()
	synctest.Wait()
	leave()
	synctest.Wait()
	return l
}

// wants checks when Outlast has returned, and how often it was overdue.
func (l *left) wants(t *testing.T, after time.Duration, overdue int32) {
	t.Helper()
	if took := <-l.over; took != after || l.overdue.Load() != overdue {
		t.Errorf("the server was done with the call after %v, and %d times overdue; want %v and %d", took, l.overdue.Load(), after, overdue)
	}
}

// A cancellation counts from when the server has read it, as its answer to the ping behind it shows,
// whatever that is.
func TestM2L20CancellationIsRead(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`
	for _, tt := range []struct {
		name    string
		busy    time.Duration // for which the server reads nothing
		answer  string
		overdue int32
	}{
		{"at once", 0, `{"jsonrpc":"2.0","id":%s,"result":{}}`, 0},
		{"at once, by a server without pings", 0, refusal, 0},
		{"late", pingTimeout / 2, refusal, 0},
		{"much later", time.Hour, `{"jsonrpc":"2.0","id":%s,"result":{}}`, 1},
	} {
		bridgetest.RunBubble(t, "M2L-20 "+tt.name, func(t *testing.T) {
			r, p := openPipe(t)
			for range 2 { // the second time it is the same
				l := leaveCall(t, r, true)
				time.Sleep(tt.busy)
				p.Want(spec.MethodToolsCall)
				p.Want(spec.NotifyCancelled)
				p.Write(tt.answer, p.Want(spec.MethodPing).ID)
				l.wants(t, tt.busy+grace, tt.overdue)
			}
		})
	}
}

// A response to the call that comes late shows that it is over. The ping that is on its way then says
// nothing against the server.
func TestM2L20LateResponseEndsACancelledCall(t *testing.T) {
	for busy, overdue := range map[time.Duration]int32{pingTimeout / 2: 0, time.Minute: 1} {
		bridgetest.RunBubble(t, "M2L-20 after "+busy.String(), func(t *testing.T) {
			r, p := openPipe(t)
			l := leaveCall(t, r, true)
			time.Sleep(busy)
			p.Result(p.Want(spec.MethodToolsCall).ID, `{}`)
			l.wants(t, busy, overdue)
			p.Want(spec.NotifyCancelled)
			p.Result(p.Want(spec.MethodPing).ID, `{}`)
			synctest.Wait()
			answerOne(t, r, p)
			l = leaveCall(t, r, true)
			p.Want(spec.MethodToolsCall)
			p.Want(spec.NotifyCancelled)
			p.Result(p.Want(spec.MethodPing).ID, `{}`)
			l.wants(t, grace, 0)
		})
	}
}

// answerOne has the server answer a request.
func answerOne(t *testing.T, r *rig, p *legacytest.ConnPeer) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := r.call(t.Context(), spec.MethodToolsList)
		failed <- err
	}()
	p.Result(p.Want(spec.MethodToolsList).ID, `{"tools":[]}`)
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

// A server that answers what was sent after the ping, but not the ping, is sent no other, and the ping
// is not cancelled. What was sent before the ping was overdue proves nothing: servers that do several
// things at a time answer in any order.
func TestM2L20ServerWithoutPongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := openPipe(t)
		l := leaveCall(t, r, true)
		p.Want(spec.MethodToolsCall)
		p.Want(spec.NotifyCancelled)
		p.Want(spec.MethodPing)
		time.Sleep(pingTimeout / 2)
		answerOne(t, r, p)
		time.Sleep(time.Minute)
		if len(l.over) > 0 || l.overdue.Load() != 1 {
			t.Errorf("the ping was overdue %d times, and the call is over: %d", l.overdue.Load(), len(l.over))
		}
		answerOne(t, r, p)
		l.wants(t, pingTimeout/2+time.Minute+grace, 1)

		l = leaveCall(t, r, true)
		p.Want(spec.MethodToolsCall)
		p.Want(spec.NotifyCancelled)
		l.wants(t, grace, 0)
		answerOne(t, r, p)
		if r.Calls.Busy() {
			t.Error("the ping still counts as a request in flight")
		}
	})
}

// Nothing is sent for a call of which nobody can be asked.
func TestM2L20CancellationOfWhatAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := openPipe(t)
		l := leaveCall(t, r, false)
		l.wants(t, grace, 0)
		p.Want(spec.MethodToolsCall)
		p.Want(spec.NotifyCancelled)
		answerOne(t, r, p)
	})
}

// Nor where streams tell whose a message is.
func TestM2L20CancellationWhereStreamsTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.On[spec.MethodToolsCall] = func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
			legacytest.StartSSE(w)
			<-r.Context().Done()
		}
		r := openHTTP(t, p)
		l := leaveCall(t, r, true)
		l.wants(t, grace, 0)
		if n := len(p.Requests(spec.MethodPing)); n != 0 {
			t.Errorf("%d pings were sent, want none", n)
		}
	})
}

// The end of the session ends the wait.
func TestM2L20SessionEndsWithACancelledCall(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(r *rig, p *legacytest.ConnPeer)
	}{
		{"the link is closed", func(r *rig, _ *legacytest.ConnPeer) { r.Close(context.Background()) }},
		{"the server is gone", func(_ *rig, p *legacytest.ConnPeer) { _ = p.Conn.Close() }},
	} {
		bridgetest.RunBubble(t, "M2L-20 "+tt.name, func(t *testing.T) {
			r, p := openPipe(t)
			l := leaveCall(t, r, true)
			time.Sleep(time.Second)
			tt.end(r, p)
			l.wants(t, time.Second, 0)
		})
	}
}
