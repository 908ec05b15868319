package back

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server that handles one message at a time reads nothing while it works on a call. The calls
// behind it wait for as long as their own time allows, in the same session.
func TestM2L14BusyServerLosesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: 30 * time.Second}}}})
		const calls = 100 // more than the pipe holds
		done := make(chan error, calls)
		serve := func(ctx context.Context, name string) error {
			_, err := body(b.Serve(ctx, ask("tools/call", fmt.Sprintf(`{"name":%q}`, name)), &backtest.Caller{}))
			return err
		}
		go func() { done <- serve(t.Context(), "first") }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		first := p.Want("tools/call")
		for range calls - 1 {
			go func() { done <- serve(t.Context(), "other") }()
		}
		synctest.Wait()
		impatient, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		if err := serve(impatient, "withdrawn"); err == nil {
			t.Error("a call that its client cancelled was answered")
		}
		time.Sleep(15 * time.Second)
		for range calls - 1 {
			m := p.Want("tools/call")
			if name, _ := wire.GetString(m.Params, "name"); name != "other" {
				t.Errorf("the server got call %q", name)
			}
			p.Result(m.ID, `{"content":[]}`)
		}
		p.Result(first.ID, `{"content":[]}`)
		for range calls {
			if err := <-done; err != nil {
				t.Errorf("Serve() = %v", err)
			}
		}
		synctest.Wait()
		if len(peers) > 0 {
			t.Error("there is another session")
		}
	})
}

// A message that waits for a server that never reads does not delay the end.
func TestM2L14BusyServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		done := make(chan error, 100)
		for range cap(done) {
			go func() {
				_, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}))
				done <- err
			}()
		}
		p := <-peers
		p.Handshake(legacytest.Everything)
		synctest.Wait()
		begun := time.Now()
		_ = b.Close(t.Context())
		for range cap(done) {
			if err := <-done; err == nil {
				t.Error("a call was answered by nobody")
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// A busyTasker is a session with a server whose tool "t" runs as a task, and which reads only when it
// is told to.
type busyTasker struct {
	t    *testing.T
	back *Back
	peer *legacytest.ConnPeer
	got  []wire.Message // what it has read in others
}

func newBusyTasker(t *testing.T, opts Options) *busyTasker {
	b, peers := pipeBack(t, opts)
	bt := &busyTasker{t: t, back: b}
	bt.call(t.Context(), "plain")
	bt.peer = <-peers
	bt.peer.Handshake(`{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`)
	bt.peer.Result(bt.peer.Want("tools/list").ID, `{"tools":[{"name":"plain"},{"name":"t","execution":{"taskSupport":"required"}}]}`)
	bt.peer.Result(bt.peer.Want("tools/call").ID, `{"content":[]}`)
	return bt
}

// call calls a tool, until ctx or the session ends.
func (bt *busyTasker) call(ctx context.Context, name string) {
	go func() {
		_, _ = body(bt.back.Serve(ctx, ask("tools/call", fmt.Sprintf(`{"name":%q}`, name)), &backtest.Caller{}))
	}()
}

// fill calls the other tool more often than the server can be told of.
func (bt *busyTasker) fill() {
	for range 100 {
		bt.call(bt.t.Context(), "plain")
	}
	synctest.Wait()
}

// readOn has the server read all that comes from now on. It returns what others is called for.
func (bt *busyTasker) readOn() (others func(method string) []wire.Message) {
	go func() { // ends with the connection
		for {
			text, err := bt.peer.Conn.Read()
			if err != nil {
				return
			}
			m, _ := wire.Parse(text, wire.Options{})
			bt.got = append(bt.got, m)
		}
	}()
	return func(method string) (of []wire.Message) {
		synctest.Wait()
		for _, m := range bt.got {
			if name, _ := wire.GetString(m.Params, "name"); m.Method == method && name != "plain" {
				of = append(of, m)
			}
		}
		return of
	}
}

// A task whose client leaves while the server is busy is cancelled when the server reads on.
func TestT15BusyServerHearsOfTheCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bt := newBusyTasker(t, Options{})
		ctx, leave := context.WithCancel(t.Context())
		bt.call(ctx, "t")
		bt.peer.Result(bt.peer.Want("tools/call").ID, `{"task":{"taskId":"t1","status":"working","pollInterval":1000}}`)
		bt.peer.Want("tasks/get")
		bt.fill()
		leave()
		time.Sleep(time.Minute)
		of := bt.readOn()
		if got := of("tasks/cancel"); len(got) != 1 || string(got[0].Params) != `{"taskId":"t1"}` {
			t.Errorf("tasks/cancel came %d times, want it once, for the task", len(got))
		}
	})
}

// A call of such a tool whose client leaves, or has no time left, before anything of it was written
// is not made later. That says nothing against the server.
func TestM2L13BusyServerGetsNoWithdrawnTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &bridgetest.Logs{}
		bt := newBusyTasker(t, Options{Options: upstream.Options{Logger: slog.New(logs), Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Minute}}}})
		bt.fill()
		ctx, leave := context.WithCancel(t.Context())
		bt.call(ctx, "t")
		bt.call(t.Context(), "t")
		synctest.Wait()
		leave()
		time.Sleep(90 * time.Second) // the time of the other call is up, too
		of := bt.readOn()
		if calls := of("tools/call"); len(calls) != 0 {
			t.Errorf("the server got %d calls of nobody's", len(calls))
		}
		known := make(map[string]bool)
		for _, m := range bt.got {
			known[m.ID.String()] = true
		}
		for _, m := range of("notifications/cancelled") {
			if id := string(wire.Get(m.Params, "requestId")); !known[id] {
				t.Errorf("the server got the cancellation of call %s, which it does not know", id)
			}
		}
		if logs.Count("server is down, trying again") != 0 {
			t.Error("the server counts as down")
		}
	})
}
