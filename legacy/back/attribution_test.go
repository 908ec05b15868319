package back

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// scheduled counts what became of the questions of random schedules.
type scheduled struct {
	asked, answered, refused, calls, cancelled atomic.Int64
}

// playSchedule has a server run a few calls that ask, at random moments, one
// question after another or two in one burst, of clients that answer, or leave,
// at random moments. The server and the clients check that no question and no
// answer went astray.
func playSchedule(t *testing.T, seed uint64, n *scheduled) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 20))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	nap := func(most time.Duration) { time.Sleep(time.Duration(roll(int(most)))) }
	check := func(c *legacytest.ServerCall, m wire.Message) {
		who, _ := wire.GetString(wire.Get(m.Result, "content"), "me")
		switch {
		case m.Error != nil || string(wire.Get(m.Result, "action")) == `"cancel"`:
			n.refused.Add(1)
		case who != c.Who():
			t.Errorf("seed %d: the server asked for %s and was answered by %q: %s", seed, c.Who(), who, m.Result)
		default:
			n.answered.Add(1)
		}
	}
	b := newAsker(t, Options{}, func(a *legacytest.Server) {
		a.Call = func(c *legacytest.ServerCall) string {
			for range roll(4) {
				nap(30 * time.Millisecond)
				params := fmt.Sprintf(`{"message":%q}`, c.Who())
				var replies []<-chan wire.Message
				for range 1 + roll(5)/4 {
					nap(burstWindow / 4)
					n.asked.Add(1)
					_, reply := c.SendRequest("elicitation/create", params)
					replies = append(replies, reply)
				}
				for _, reply := range replies {
					check(c, <-reply)
				}
			}
			nap(30 * time.Millisecond)
			return said(c.Who())
		}
	})
	var calls sync.WaitGroup
	for i := range 3 + roll(6) {
		calls.Go(func() {
			who := fmt.Sprintf("caller-%d", i)
			nap(50 * time.Millisecond)
			ctx := t.Context()
			if roll(10) == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(roll(int(time.Second))))
				defer cancel()
			}
			x := &backtest.Client{Answer: func(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
				if got, _ := wire.GetString(q.Params, "message"); got != who {
					t.Errorf("seed %d: %s was asked what is for %s", seed, who, got)
				}
				if err := wake.Wait(ctx, time.Duration(roll(int(2*time.Second)))); err != nil {
					return mcp.InputResponse{}, err
				}
				return mcp.InputResponse{Result: fmt.Appendf(nil, `{"action":"accept","content":{"me":%q}}`, who)}, nil
			}}
			n.calls.Add(1)
			got, err := body(b.Serve(ctx, askable(who), x))
			switch {
			case ctx.Err() != nil:
				n.cancelled.Add(1)
			case err != nil || got != said(who):
				t.Errorf("seed %d: %s got %s, %v", seed, who, got, err)
			}
		})
	}
	calls.Wait()
}

// One child serves many clients at a time, and nothing on its pipe says whose a
// question is.
func TestM2L20RandomSchedules(t *testing.T) {
	t.Parallel()
	var n scheduled
	for seed := range uint64(bridgetest.Numbers(250, 1000)) {
		synctest.Test(t, func(t *testing.T) { playSchedule(t, seed, &n) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d calls, %d cancelled; %d questions, %d answered, %d refused",
		n.calls.Load(), n.cancelled.Load(), n.asked.Load(), n.answered.Load(), n.refused.Load())
	if a, q := n.answered.Load(), n.asked.Load(); a < q*8/10 {
		t.Errorf("%d of %d questions were answered, want most", a, q)
	}
}

// A call that is asked in one burst is asked all of it, though it waits already.
func TestM2L20InputsInOneBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				_, one := c.SendRequest("elicitation/create", `{"message":"one"}`)
				_, two := c.SendRequest("elicitation/create", `{"message":"two"}`)
				return said(string((<-one).Result) + string((<-two).Result))
			}
		})
		x := &backtest.Client{Answer: func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
			time.Sleep(time.Second)
			return mcp.InputResponse{Result: wire.Get(q.Params, "message")}, nil
		}}
		if got, err := body(b.Serve(t.Context(), askable("ada"), x)); err != nil || got != said(`"one""two"`) {
			t.Errorf("Serve = %s, %v, want both answers", got, err)
		}
	})
}

func TestM2L20OneLaneOnStdio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atOnce, most atomic.Int64
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(*legacytest.ServerCall) string {
				most.Store(max(most.Load(), atOnce.Add(1)))
				defer atOnce.Add(-1)
				time.Sleep(time.Second)
				return said("done")
			}
			a.On = map[string]func(wire.Message) string{"tools/list": func(wire.Message) string { return `{"tools":[]}` }}
		})
		begin := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				if _, err := body(b.Serve(t.Context(), askable("ada"), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		list := askable("")
		list.Method, list.Params = "tools/list", nil
		if _, err := body(b.Serve(t.Context(), list, &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || time.Since(begin) > 0 {
			t.Errorf("tools/list took %v, %v: it needs no lane, want it answered at once", time.Since(begin), err)
		}
		calls.Wait()
		if took := time.Since(begin); most.Load() != 1 || took != 3*time.Second {
			t.Errorf("%d calls ran at once, all took %v, want 1 and 3s", most.Load(), took)
		}
	})
}

// parkedAndNext serves a call that asks and a next one, and returns when each
// ended.
func parkedAndNext(t *testing.T, opts Options) (parked, next time.Duration) {
	b := newAsker(t, opts, func(a *legacytest.Server) {
		a.Call = func(c *legacytest.ServerCall) string {
			if c.Who() == "asks" {
				c.Elicit()
			} else {
				time.Sleep(10 * time.Second)
			}
			return said("done")
		}
	})
	begin := time.Now()
	var calls sync.WaitGroup
	serve := func(who string, took *time.Duration) {
		calls.Go(func() {
			x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
				time.Sleep(5 * time.Second)
				return mcp.InputResponse{Result: []byte(accepted)}, nil
			}}
			if _, err := body(b.Serve(t.Context(), askable(who), x)); err != nil {
				t.Error(err)
			}
			*took = time.Since(begin)
		})
		synctest.Wait()
	}
	serve("asks", &parked)
	serve("next", &next)
	calls.Wait()
	return parked, next
}

func TestM2L20AParkedCallLetsTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parked, next := parkedAndNext(t, Options{})
		if parked != 5*time.Second {
			t.Errorf("the parked call ended after %v, want its answer delivered at once", parked)
		}
		if next != 10*time.Second+burstWindow {
			t.Errorf("the next call ended after %v, want it to run meanwhile", next)
		}
	})
	bridgetest.RunBubble(t, "M2L-20 it keeps its lane if so configured", func(t *testing.T) {
		if _, next := parkedAndNext(t, Options{Options: upstream.Options{Settings: settings.Server{Isolation: settings.IsolateNothing}}}); next != 15*time.Second {
			t.Errorf("the next call ended after %v, want it to wait", next)
		}
	})
}

// heldQuestion has two calls run on one connection, one of which was parked before
// and goes on for a while; the other asks meanwhile. It returns what the server
// heard, when, and whether the right client was asked.
func heldQuestion(t *testing.T, goesOn time.Duration) (heard wire.Message, after time.Duration) {
	both := make(chan struct{})
	b := newAsker(t, Options{}, func(a *legacytest.Server) {
		a.Call = func(c *legacytest.ServerCall) string {
			if c.Who() == "first" {
				c.Elicit()
				close(both)
				time.Sleep(goesOn)
				return said("done")
			}
			<-both
			time.Sleep(time.Second)
			begin := time.Now()
			heard = c.Elicit()
			after = time.Since(begin)
			return said("done")
		}
	})
	var calls sync.WaitGroup
	serve := func(who string) {
		calls.Go(func() {
			x := &backtest.Client{Answer: func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
				if got, _ := wire.GetString(q.Params, "message"); got != who {
					t.Errorf("%s was asked what is for %s", who, got)
				}
				time.Sleep(time.Second)
				return mcp.InputResponse{Result: []byte(accepted)}, nil
			}}
			if _, err := body(b.Serve(t.Context(), askable(who), x)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	serve("first")
	serve("second")
	calls.Wait()
	return heard, after
}

func TestM2L20AmbiguousQuestionsAreHeld(t *testing.T) {
	bridgetest.RunBubble(t, "M2L-20 until one candidate is left", func(t *testing.T) {
		heard, after := heldQuestion(t, 5*time.Second)
		if string(heard.Result) != accepted || after != 5*time.Second { // 4 s held, 1 s at the client
			t.Errorf("the server heard %s %v after %v, want the answer after 5s", heard.Result, heard.Error, after)
		}
	})
	bridgetest.RunBubble(t, "M2L-20 and refused at the bound", func(t *testing.T) {
		heard, after := heldQuestion(t, time.Minute-2*time.Second)
		if heard.Error == nil || !strings.Contains(heard.Error.Message, "2 calls are in flight") || after != holdTimeout {
			t.Errorf("the server heard %s %v after %v, want a refusal after %v", heard.Result, heard.Error, after, holdTimeout)
		}
	})
}

// A question that came right before or after its call was cancelled must not
// reach the client of the call that runs on.
func TestM2L20QuestionsOfCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard wire.Message
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				if c.Who() == "leaves" {
					c.Elicit() // parks, and lets the other run
					<-c.Cancelled
					time.Sleep(cancelGrace / 2)
					heard = c.Elicit()
					return said("nobody hears it")
				}
				time.Sleep(10 * time.Second)
				return said("done")
			}
		})
		ctx, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		var calls sync.WaitGroup
		calls.Go(func() {
			x := &backtest.Client{Answer: backtest.Answers(map[string]string{"elicitation/create": accepted})}
			x.Answer = func(ctx context.Context, _ mcp.InputRequest) (mcp.InputResponse, error) {
				return mcp.InputResponse{Result: []byte(accepted)}, wake.Wait(ctx, time.Second)
			}
			if _, err := b.Serve(ctx, askable("leaves"), x); err == nil {
				t.Error("the cancelled call was answered")
			}
		})
		synctest.Wait()
		x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
			t.Error("a client was asked what a cancelled call wants to know")
			return mcp.InputResponse{}, mcp.ErrCannotAsk
		}}
		if _, err := body(b.Serve(t.Context(), askable("stays"), x)); err != nil {
			t.Error(err)
		}
		calls.Wait()
		if heard.Error == nil || !strings.Contains(heard.Error.Message, "cancelled") {
			t.Errorf("the server heard %s %v, want a refusal", heard.Result, heard.Error)
		}
	})
}

// A client that takes its time over a question keeps its call from ending. What the server
// asks meanwhile for that call, which was cancelled, must not reach the client of another.
func TestM2L20QuestionsWhileACancelledCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks sync.WaitGroup
		var heard wire.Message
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				if c.Who() == "leaves" {
					asks.Go(func() {
						time.Sleep(4 * time.Second)
						heard = c.Elicit()
					})
					c.Elicit() // parks, and lets the other run
				}
				time.Sleep(10 * time.Second)
				return said("done")
			}
		})
		ctx, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		var calls sync.WaitGroup
		calls.Go(func() {
			x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
				time.Sleep(5 * time.Second)
				return mcp.InputResponse{}, mcp.ErrCannotAsk
			}}
			if _, err := b.Serve(ctx, askable("leaves"), x); err == nil {
				t.Error("the cancelled call was answered")
			}
		})
		time.Sleep(time.Second)
		x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
			t.Error("a client was asked what a cancelled call wants to know")
			return mcp.InputResponse{}, mcp.ErrCannotAsk
		}}
		if _, err := body(b.Serve(t.Context(), askable("stays"), x)); err != nil {
			t.Error(err)
		}
		calls.Wait()
		asks.Wait()
		if heard.Error == nil || !strings.Contains(heard.Error.Message, "cancelled") {
			t.Errorf("the server heard %s %v, want a refusal", heard.Result, heard.Error)
		}
	})
}

// The call that waited for one that was cancelled asks at once. It gets the lane when its question can't
// be one of the cancelled call any more, which still asks for a while, and nobody is asked that.
func TestM2L20NextCallAfterACancelledOneMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late wire.Message
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				if c.Who() == "leaves" {
					<-c.Cancelled
					time.Sleep(cancelGrace / 2)
					late = c.Elicit()
					return said("nobody hears it")
				}
				heard := c.Elicit()
				return said(fmt.Sprintf("%s %v", heard.Result, heard.Error))
			}
		})
		ctx, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := b.Serve(ctx, askable("leaves"), &backtest.Client{Answer: backtest.NeverAnswers}); err == nil {
				t.Error("the cancelled call was answered")
			}
		})
		synctest.Wait()
		begin := time.Now()
		x := &backtest.Client{Answer: func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
			if got, _ := wire.GetString(q.Params, "message"); got != "next" {
				t.Errorf("the client of the next call was asked what is for %q", got)
			}
			return mcp.InputResponse{Result: []byte(accepted)}, nil
		}}
		got, err := body(b.Serve(t.Context(), askable("next"), x))
		if want := said(accepted + " <nil>"); err != nil || got != want {
			t.Errorf("the next call ended with %s, %v, want %s", got, err, want)
		}
		if took := time.Since(begin); took != 3*time.Second+cancelGrace {
			t.Errorf("the next call took %v, want it to run %v after the cancellation", took, cancelGrace)
		}
		calls.Wait()
		synctest.Wait()
		if late.Error == nil {
			t.Errorf("the cancelled call's question was answered %s, want a refusal", late.Result)
		}
	})
}

// A question that no client of the profile can answer is not held.
func TestM2L21RefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.Call = func(c *legacytest.ServerCall) string {
				begin := time.Now()
				m := c.Elicit()
				if m.Error == nil || !strings.Contains(m.Error.Message, `{"elicitation":{"form":{}}}`) || time.Since(begin) > 0 {
					t.Errorf("the server heard %s %v after %v, want a refusal at once", m.Result, m.Error, time.Since(begin))
				}
				time.Sleep(time.Second)
				return said("went another way")
			}
		})
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if got, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || got != said("went another way") {
					t.Errorf("Serve = %s, %v", got, err)
				}
			})
		}
		calls.Wait()
	})
}
