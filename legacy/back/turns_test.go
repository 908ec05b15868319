package back

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A lateConn takes its time for cancellations.
type lateConn struct{ transport.Conn }

func (c lateConn) Write(msg []byte) error {
	if strings.Contains(string(msg), spec.NotifyCancelled) {
		time.Sleep(time.Second)
	}
	return c.Conn.Write(msg)
}

// The next call of a lane runs when the server has read the cancellation of the one before: a
// question of that call, which was cancelled, would be taken for one of the next.
func TestM2L20NextCallFollowsTheCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, peers := legacytest.Pipes(t)
		b := newTestBack(t, Options{Dial: func(ctx context.Context) (transport.Conn, error) {
			c, err := dial(ctx)
			return lateConn{c}, err
		}})
		call := func(ctx context.Context, name string) <-chan error {
			req := ask(spec.MethodToolsCall, `{"name":"`+name+`"}`)
			req.Profile.Capabilities = json.RawMessage(`{"elicitation":{}}`)
			done := make(chan error, 1)
			go func() {
				_, err := body(b.Serve(ctx, req, &backtest.Caller{}))
				done <- err
			}()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := call(ctx, "first")
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want(spec.MethodToolsCall)
		cancel()
		begun := time.Now()
		if err := <-first; err == nil || time.Since(begun) > 0 {
			t.Errorf("the cancelled call ended with %v after %v, want that at once", err, time.Since(begun))
		}
		second := call(t.Context(), "second")
		if got := p.Want(spec.NotifyCancelled); !strings.Contains(string(got.Params), `"requestId":`+m.ID.String()) {
			t.Errorf("cancelled %s, want %s", got.Params, m.ID)
		}
		p.Result(p.Want(spec.MethodPing).ID, `{}`)
		p.Result(p.Want(spec.MethodToolsCall).ID, `{"content":[]}`)
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// A turn is two calls of clients that can be asked: the first one was cancelled a moment ago, the next
// one waits behind it.
type turn struct {
	back   *Back
	peer   *legacytest.ConnPeer // it has read the first one, and not its cancellation
	peers  <-chan *legacytest.ConnPeer
	first  wire.Message
	left   time.Time // when the first one was cancelled
	caller backtest.Caller
	done   chan error // gets how the next one ended
}

func newTurn(t *testing.T) *turn {
	r := &turn{done: make(chan error, 1)}
	r.back, r.peers = pipeBack(t, Options{Eager: true})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	gone := make(chan error, 1)
	go func() {
		_, err := body(r.back.Serve(ctx, askable("leaves"), &backtest.Caller{}))
		gone <- err
	}()
	r.peer = <-r.peers
	r.peer.Handshake(`{"tools":{}}`)
	r.first = r.peer.Want(spec.MethodToolsCall)
	leave()
	if err := <-gone; err == nil {
		t.Error("the cancelled call was answered")
	}
	r.left = time.Now()
	r.caller.Ask = func(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
		return []mcp.InputResponse{{Result: json.RawMessage(accepted)}}, nil
	}
	go r.serve(t, "next")
	synctest.Wait()
	return r
}

// serve makes a call, whose client accepts what it is asked.
func (r *turn) serve(t *testing.T, who string) {
	_, err := body(r.back.Serve(t.Context(), askable(who), &r.caller))
	r.done <- err
}

// cancelled has the server read the cancellation, and the ping behind it, which it returns.
func (r *turn) cancelled(t *testing.T) wire.Message {
	t.Helper()
	if m := r.peer.Want(spec.NotifyCancelled); string(wire.Get(m.Params, "requestId")) != r.first.ID.String() {
		t.Errorf("cancelled %s, want %s", m.Params, r.first.ID)
	}
	return r.peer.Want(spec.MethodPing)
}

// wantNext has the server read the next call, which was sent so long after the cancellation.
func (r *turn) wantNext(t *testing.T, after time.Duration) wire.Message {
	t.Helper()
	m := r.peer.Want(spec.MethodToolsCall)
	if who, _ := wire.GetString(wire.Get(m.Params, "arguments"), "who"); who != "next" || time.Since(r.left) != after {
		t.Errorf("call %q came %v after the cancellation, want the next one after %v", who, time.Since(r.left), after)
	}
	return m
}

// pose has the server ask, and returns what it hears.
func (r *turn) pose(id string) wire.Message {
	r.write(id)
	return r.peer.Read()
}

func (r *turn) write(id string) {
	r.peer.Write(`{"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":{"message":%q}}`, id, id)
	synctest.Wait()
}

// wantAnswered has the server answer the next call, whose client was asked that alone.
func (r *turn) wantAnswered(t *testing.T, m wire.Message, asked ...string) {
	t.Helper()
	r.peer.Result(m.ID, said("done"))
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	var got []string
	for _, qs := range r.caller.Asked() {
		text, _ := wire.GetString(qs[0].Params, "message")
		got = append(got, text)
	}
	if !slices.Equal(got, asked) {
		t.Errorf("the client of the next call was asked %q, want %q", got, asked)
	}
}

// A server that works on a call, and reads nothing meanwhile, may ask for it long after it was
// cancelled. That is refused, whether the next call was sent by then or not, and the next client is
// asked what its own call wants to know.
func TestM2L20BusyServerAsksForACancelledCall(t *testing.T) {
	bridgetest.RunBubble(t, "M2L-20 before the next call is sent", func(t *testing.T) {
		r := newTurn(t)
		time.Sleep(time.Second)
		r.write("late")
		ping := r.cancelled(t)
		if m := r.peer.Read(); m.Error == nil {
			t.Errorf("the cancelled call's question was answered %s, want a refusal", m.Result)
		}
		r.peer.Result(ping.ID, `{}`)
		next := r.wantNext(t, time.Second+cancelGrace)
		if m := r.pose("own"); string(m.Result) != accepted {
			t.Errorf("the next call's question was answered %s %v", m.Result, m.Error)
		}
		r.wantAnswered(t, next, "own")
	})
	bridgetest.RunBubble(t, "M2L-20 after that", func(t *testing.T) {
		r := newTurn(t)
		time.Sleep(time.Minute)
		r.write("late")
		ping := r.cancelled(t)
		next := r.wantNext(t, time.Minute) // it was sent much earlier
		if m := r.peer.Read(); m.Error == nil || !strings.Contains(m.Error.Message, "cancelled") {
			t.Errorf("the cancelled call's question was answered %s %v, want a refusal", m.Result, m.Error)
		}
		r.peer.Result(ping.ID, `{}`)
		time.Sleep(cancelGrace / 2)
		if m := r.pose("later"); m.Error == nil {
			t.Errorf("right after the cancellation was read, a question was answered %s, want a refusal", m.Result)
		}
		time.Sleep(cancelGrace)
		if m := r.pose("own"); string(m.Result) != accepted {
			t.Errorf("the next call's question was answered %s %v", m.Result, m.Error)
		}
		r.wantAnswered(t, next, "own")
	})
}

// A server that answers no ping does not hold up the next call for long, and not again. Before that is
// known, what it asks is refused.
func TestM2L20CancelledAtAServerWithoutPongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const overdue = 2 * time.Second
		r := newTurn(t)
		r.cancelled(t)
		next := r.wantNext(t, overdue)
		if m := r.pose("late"); m.Error == nil {
			t.Errorf("a question that may be of the cancelled call was answered %s, want a refusal", m.Result)
		}
		r.wantAnswered(t, next)
		time.Sleep(time.Minute)

		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := body(r.back.Serve(ctx, askable("leaves"), &backtest.Caller{})); err == nil {
			t.Error("the cancelled call was answered")
		}
		r.left = time.Now()
		r.peer.Want(spec.MethodToolsCall)
		r.peer.Want(spec.NotifyCancelled)
		go r.serve(t, "next")
		next = r.wantNext(t, cancelGrace)
		if m := r.pose("own"); string(m.Result) != accepted {
			t.Errorf("the next call's question was answered %s %v", m.Result, m.Error)
		}
		r.wantAnswered(t, next, "own")
	})
}

// A cancelled call that is answered all the same is over: the next one runs at once.
func TestM2L20LateAnswerLetsTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTurn(t)
		time.Sleep(time.Second)
		r.peer.Result(r.first.ID, said("late"))
		ping := r.cancelled(t)
		next := r.wantNext(t, time.Second)
		if m := r.pose("own"); string(m.Result) != accepted {
			t.Errorf("the next call's question was answered %s %v", m.Result, m.Error)
		}
		r.peer.Result(ping.ID, `{}`)
		r.wantAnswered(t, next, "own")
	})
}

// If the session ends before the server has read the cancellation, the next call has another one at
// once; and the end of the Back waits for nothing.
func TestM2L20SessionEndsAfterACancellation(t *testing.T) {
	bridgetest.RunBubble(t, "M2L-20 the server is gone", func(t *testing.T) {
		r := newTurn(t)
		time.Sleep(time.Second)
		_ = r.peer.Conn.Close()
		r.peer = <-r.peers
		r.peer.Handshake(`{"tools":{}}`)
		r.wantAnswered(t, r.wantNext(t, time.Second))
	})
	bridgetest.RunBubble(t, "M2L-20 the Back is closed", func(t *testing.T) {
		r := newTurn(t)
		begun := time.Now()
		if err := r.back.Close(t.Context()); err != nil || time.Since(begun) > time.Second {
			t.Errorf("Close = %v after %v", err, time.Since(begun))
		}
		if err := <-r.done; err == nil {
			t.Error("the next call was answered by nobody")
		}
	})
}

// A session that one call has for itself ends with that: nothing is asked behind the cancellation.
func TestM2L20CancellationOfTheOnlyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		req := askable("leaves")
		req.Profile.Single = true
		go func() { _, _ = body(b.Serve(ctx, req, &backtest.Caller{})) }()
		p := <-peers
		p.Handshake(`{"tools":{}}`)
		p.Want(spec.MethodToolsCall)
		leave()
		p.Want(spec.NotifyCancelled)
		if !p.IsEnded() {
			t.Error("more was sent behind the cancellation, want the end")
		}
	})
}
