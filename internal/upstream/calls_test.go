package upstream

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A call ends once: what comes later changes nothing, and is told so.
func TestCallEndsOnce(t *testing.T) {
	lost := errors.New("lost")
	settle := func(c *Call) bool { return c.SettleElsewhere(Response{Result: []byte("1")}) }
	fail := func(c *Call) bool { return c.Fail(lost) }
	for _, tt := range []struct {
		name          string
		first, second func(*Call) bool
		settled       bool
	}{
		{"answered, then lost", settle, fail, true},
		{"lost, then answered", fail, settle, false},
		{"answered twice", settle, settle, true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &Call{ID: 7, Cancel: cancel}
		if _, _, ended := c.Outcome(); ended || c.IsSettled() {
			t.Errorf("%s: it has ended before anything came", tt.name)
		}
		if !tt.first(c) || tt.second(c) {
			t.Errorf("%s: want the first to count, and the second not", tt.name)
		}
		r, settled := c.Settled()
		if _, err, ended := c.Outcome(); !ended || settled != tt.settled || settled != (err == nil) || settled && string(r.Result) != "1" {
			t.Errorf("%s: %+v, %v, %v", tt.name, r, err, ended)
		}
		if want := map[bool]error{true: errAnswered, false: lost}[tt.settled]; context.Cause(ctx) != want {
			t.Errorf("%s: its request ended with %v, want %v", tt.name, context.Cause(ctx), want)
		}
	}
}

// A cancelled call says whether its client has left, or its time was up.
func TestCancellation(t *testing.T) {
	for why, want := range map[error]string{
		context.Canceled:         "the client cancelled the request",
		context.DeadlineExceeded: "time-out",
		ErrTooLong:               "time-out",
	} {
		m, err := wire.Parse((&Call{ID: 7}).Cancellation(why), wire.Options{})
		if reason, _ := wire.GetString(m.Params, "reason"); err != nil || m.Method != spec.NotifyCancelled || reason != want || string(wire.Get(m.Params, "requestId")) != "7" {
			t.Errorf("Cancellation(%v) = %s, %v, want %q", why, m.Text, err, want)
		}
	}
}

func TestCalls(t *testing.T) {
	var calls Calls
	one, two := &Call{ID: 1, Wake: wake.NewSignal()}, &Call{ID: 2, Wake: wake.NewSignal()}
	for _, c := range []*Call{one, two} {
		if err := calls.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if calls.Find(wire.NumberID(2)) != two || calls.Find(wire.StringID("2")) != nil || calls.Find(wire.NumberID(3)) != nil || calls.Len() != 2 {
		t.Errorf("%d calls, want each found by its own id", calls.Len())
	}
	calls.Remove(one)
	lost := errors.New("lost")
	if calls.Err() != nil || !calls.End(lost) || calls.End(errors.New("again")) || calls.Err() != lost {
		t.Errorf("Err() = %v, want the first reason", calls.Err())
	}
	f := AsFailure(calls.Add(one))
	if f == nil || !errors.Is(f, lost) || f.Fate != NotSent || !f.Lost {
		t.Errorf("Add() after the end = %+v, want that it was not sent", f)
	}
	calls.Fail(lost)
	if _, err, _ := one.Outcome(); err != nil {
		t.Errorf("a call that was removed has failed: %v", err)
	}
	_, err, _ := two.Outcome()
	if f := AsFailure(err); f == nil || f.Fate != MayHaveRun || !f.Lost || !calls.Busy() {
		t.Errorf("the call in flight ended with %v, want that it may have run", err)
	}
	if calls.Remove(two); calls.Busy() {
		t.Error("Busy() without a call")
	}
}

// An owner counts what it is told.
type owner struct{ answers, deliveries atomic.Int32 }

func (o *owner) Answered(*Call, Response) { o.answers.Add(1) }
func (o *owner) Deliver()                 { o.deliveries.Add(1) }

// newTestMux returns a Mux that runs, the far end of its connection, and why it was lost.
func newTestMux(t *testing.T) (*Mux, *backtest.Peer, <-chan error) {
	near, far := transport.NewPipe()
	return newTestMuxOver(t, near, far)
}

// newTestMuxOver is newTestMux over the near end of a connection.
func newTestMuxOver(t *testing.T, near, far transport.Conn) (*Mux, *backtest.Peer, <-chan error) {
	o := &Options{Name: "scripted"}
	o.Fill(spec.Legacy)
	lost := make(chan error, 4)
	m := NewMux(NewInbox(o, Reading{Keep: true}, &notingSink{}), near, func(err error) { lost <- err })
	ran := make(chan struct{})
	go func() { defer close(ran); m.Run(t.Context(), t.Context().Done()) }() // ends with the connection
	t.Cleanup(func() { _ = near.Close(); _ = far.Close(); <-ran })
	return &m, backtest.NewPeer(t, far), lost
}

// A connection carries calls side by side, each with its own answer, and tells the owners of
// notifications meanwhile.
func TestMux(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, peer, lost := newTestMux(t)
		var owners [2]owner
		var calls [2]*Call
		done := make(chan error, 2)
		for i := range calls {
			calls[i] = &Call{ID: int64(i), Owner: &owners[i], Wake: wake.NewSignal()}
			if err := m.Calls.Add(calls[i]); err != nil {
				t.Fatal(err)
			}
			go func() {
				done <- m.Do(t.Context(), calls[i], wire.AppendRequest(nil, wire.NumberID(int64(i)), "tools/call", nil, nil))
			}()
		}
		peer.Want("tools/call")
		peer.Want("tools/call")
		calls[0].Notice()
		synctest.Wait()
		if n := owners[0].deliveries.Load(); n != 1 || len(done) != 0 {
			t.Errorf("%d deliveries, %d calls done, want one and none", n, len(done))
		}
		peer.Result(wire.NumberID(1), `{"n":1}`)
		peer.Write(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		peer.Result(wire.NumberID(0), `{"n":0}`)
		for range calls {
			if err := <-done; err != nil {
				t.Errorf("Do() = %v", err)
			}
		}
		for i, want := range []string{`{"n":0}`, `{"n":1}`} {
			if r, ok := calls[i].Settled(); !ok || string(r.Result) != want || owners[i].answers.Load() != 1 {
				t.Errorf("call %d: %s, want %s", i, r.Result, want)
			}
		}
		_ = peer.Conn.Close()
		if err := <-lost; err == nil {
			t.Error("lost without a reason")
		}
	})
}

// What is not written was not run; a caller that leaves ends its own wait alone.
func TestMuxFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, peer, lost := newTestMux(t)
		left := errors.New("the client left")
		gone, leave := context.WithCancelCause(t.Context())
		leave(left)
		c := &Call{ID: 1, Wake: wake.NewSignal()}
		if f := AsFailure(m.Do(gone, c, []byte("{}"))); f == nil || f.Cause != left || f.Fate != NotSent {
			t.Errorf("Do() for a client that has left = %+v, want it not sent", f)
		}
		ctx, leave := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- m.Do(ctx, c, wire.AppendRequest(nil, wire.NumberID(1), "x", nil, nil)) }()
		peer.Want("x")
		leave(left)
		if err := <-done; err != left {
			t.Errorf("Do() = %v, want %v", err, left)
		}
		_ = m.Conn.Close()
		if err := m.Calls.Add(c); err != nil {
			t.Fatal(err)
		}
		f := AsFailure(m.Do(t.Context(), c, []byte("{}")))
		if f == nil || f.Fate != NotSent || !f.Lost || !strings.Contains(f.Error(), "writing to it") || m.Calls.Len() != 0 || <-lost == nil {
			t.Errorf("Do() on a closed connection = %v, want it not sent, and lost", f)
		}
	})
}

// A halfConn takes nothing, and is read when it may be.
type halfConn struct {
	transport.Conn
	free <-chan struct{} // closed when it may be
}

func (c halfConn) Read() ([]byte, error) { <-c.free; return c.Conn.Read() }
func (halfConn) Write([]byte) error      { return io.ErrClosedPipe }

// A write may fail before what the server has written is read: calls that it has answered have their
// answers, and the connection is lost when they have been read.
func TestMuxReadsWhatWasWrittenBeforeAWriteFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.NewPipe()
		free := make(chan struct{})
		m, peer, lost := newTestMuxOver(t, halfConn{near, free}, far)
		answered := &Call{ID: 1, Wake: wake.NewSignal()}
		if err := m.Calls.Add(answered); err != nil {
			t.Fatal(err)
		}
		peer.Result(wire.NumberID(1), `{"n":1}`)
		_ = far.Close()
		sent := make(chan error, 1)
		go func() { sent <- m.Send(t.Context(), &Call{ID: 2}, []byte(`{}`)) }()
		time.Sleep(readOut - time.Second)
		if len(sent) > 0 || len(lost) > 0 {
			t.Error("the connection was given up before it was read")
		}
		close(free)
		if f := AsFailure(<-sent); f == nil || f.Fate != NotSent || !f.Lost || len(lost) == 0 {
			t.Errorf("Send() = %+v, want it not sent, and the connection lost", f)
		}
		if r, ok := answered.Settled(); !ok || string(r.Result) != `{"n":1}` {
			t.Errorf("the other call has ended with %q, want its answer", r.Result)
		}
	})
}

// A server that reads no more, and does not end, is given up.
func TestMuxGivesUpAServerThatReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.NewPipe()
		free := make(chan struct{})
		close(free)
		m, _, lost := newTestMuxOver(t, halfConn{near, free}, far)
		begun := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if f := AsFailure(m.Send(short, &Call{ID: 1}, []byte(`{}`))); f == nil || f.Fate != NotSent || time.Since(begun) != time.Second || len(lost) > 0 {
			t.Errorf("Send() = %+v after %v, want it not sent when its client leaves", f, time.Since(begun))
		}
		begun = time.Now()
		if f := AsFailure(m.Send(t.Context(), &Call{ID: 2}, []byte(`{}`))); f == nil || f.Fate != NotSent || time.Since(begun) != readOut || len(lost) != 1 {
			t.Errorf("Send() = %+v after %v, want it not sent, and the connection lost once, after %v", f, time.Since(begun), readOut)
		}
	})
}

// A server that is busy with a call reads the others later: no connection ends because of that.
// A call that ends meanwhile, of which nothing was written, is withdrawn.
func TestM2L14BusyServerLosesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, peer, lost := newTestMux(t)
		const calls = 100 // more than the pipe holds
		done := make(chan error, calls)
		do := func(ctx context.Context, id int64) error {
			c := &Call{ID: id, Wake: wake.NewSignal()}
			if err := m.Calls.Add(c); err != nil {
				return err
			}
			defer m.Calls.Remove(c)
			return m.Do(ctx, c, wire.AppendRequest(nil, wire.NumberID(id), "tools/call", nil, nil))
		}
		go func() { done <- do(t.Context(), 1) }()
		first := peer.Want("tools/call")
		for i := range int64(calls - 1) {
			go func() { done <- do(t.Context(), 2+i) }()
		}
		synctest.Wait()
		short, cancel := context.WithTimeoutCause(t.Context(), 15*time.Second, ErrTooLong)
		defer cancel()
		if f := AsFailure(do(short, 1000)); f == nil || f.Cause != ErrTooLong || f.Fate != NotSent || f.Lost {
			t.Errorf("Do() of a call that ran out of time = %+v, want it not sent, and the connection not lost", f)
		}
		time.Sleep(20 * time.Second)
		for range calls - 1 {
			next := peer.Want("tools/call")
			if id, _ := next.ID.Int(); id == 1000 {
				t.Error("the server got a call that was withdrawn")
			}
			peer.Result(next.ID, `{}`)
		}
		peer.Result(first.ID, `{}`)
		for range calls {
			if err := <-done; err != nil {
				t.Errorf("Do() = %v", err)
			}
		}
		if len(lost) > 0 {
			t.Errorf("the connection was lost: %v", <-lost)
		}
	})
}

// A probe that gives up while its process does not read leaves a call unwritten, though the call's
// own context goes on. Why is known all the same.
func TestMuxOfAConnectionThatIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.NewPipe()
		launcher := transport.NewLauncher(func() (transport.Conn, error) { return near, nil }, nil)
		defer launcher.Close()
		defer far.Close()
		p, err := launcher.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, _, _ := newTestMux(t)
		borrowed := p.Borrow()
		over := NewMux(m.Inbox, borrowed, m.lost)
		const full = 64
		for range full {
			if err := borrowed.Write([]byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		sent := make(chan error, 1)
		go func() { sent <- over.Send(t.Context(), &Call{ID: 1}, []byte(`{}`)) }()
		synctest.Wait()
		_ = borrowed.Close()
		if f := AsFailure(<-sent); f == nil || f.Fate != NotSent || !errors.Is(f.Cause, transport.ErrClosed) {
			t.Errorf("Send() = %+v, want a cause", f)
		}
		_ = p.Close()
	})
}
