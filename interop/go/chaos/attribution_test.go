package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestM2L20QuestionsFindTheirCalls has many calls ask on one connection on which
// nothing tells whose question a question is. Each question repeats what its own
// call was given, so that a client knows one that is not its own.
func TestM2L20QuestionsFindTheirCalls(t *testing.T) {
	const calls = 1000
	for _, tt := range []struct {
		name    string
		leavers int // of a hundred clients
	}{{"all stay", 0}, {"some leave", 4}} {
		t.Run(tt.name, func(t *testing.T) {
			a := &asking{world: newWorld(t, setup{stdio: true, server: ", parked_ttl: 60s, gather: 2ms"}), seed: rig.Seed(t), leavers: tt.leavers}
			inParallel(t.Context(), calls, a.call)
			t.Logf("%d calls: %d answered, %d refused for doubt, %d left, %d questions put", calls, a.answered.Load(), a.refused.Load(), a.left.Load(), a.put.Load())
			if a.left.Load() == 0 && a.refused.Load() > 0 || a.refused.Load() > calls/4 {
				t.Errorf("%d calls were refused, though %d clients left", a.refused.Load(), a.left.Load())
			}
			if tt.leavers > 0 && a.left.Load() == 0 {
				t.Error("no client left: nothing was shown")
			}
			a.wantOwnAnswers()
		})
	}
}

// An asking is what became of the calls.
type asking struct {
	*world
	seed    uint64
	leavers int

	answered, refused, left, put atomic.Int64
}

// call makes one call, and answers what it asks after a while.
func (a *asking) call(ctx context.Context, i int) {
	rng := rand.New(rand.NewPCG(a.seed, uint64(i)))
	nonce := fmt.Sprint("call ", i)
	args := map[string]any{"nonce": nonce, "delay": rng.IntN(4)}
	leaves := rng.IntN(100) < a.leavers
	if leaves {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(rng.IntN(1000))*time.Millisecond)
		defer stop()
	}
	for more := ""; ; {
		got := a.tool(ctx, "ask", args, more)
		switch {
		case got.err != nil && leaves && ctx.Err() != nil:
			a.left.Add(1)
			return
		case got.err != nil:
			a.t.Errorf("%s = %v", nonce, got.err)
			return
		case got.again.state == "":
			a.judge(nonce, &got)
			return
		case !got.again.asks(nonce):
			a.t.Errorf("%s was asked what is not its own: %s", nonce, got.text)
			return
		}
		a.put.Add(1)
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // a user's time
		more = got.again.retry()
	}
}

// judge takes the end of a call whose client stayed.
func (a *asking) judge(nonce string, got *answer) {
	if got.code != 0 || got.isError {
		a.refused.Add(1)
		return
	}
	for _, text := range got.answers {
		if text != "re "+nonce {
			a.t.Errorf("%s was given the answer %q", nonce, text)
		}
	}
	if got.nonce != nonce || len(got.answers) != 1 {
		a.t.Errorf("%s = %s", nonce, got.text)
	}
	a.answered.Add(1)
}

// wantOwnAnswers holds what the server was told against what it asked.
func (w *world) wantOwnAnswers() {
	w.t.Helper()
	answers := 0
	for _, e := range w.entries() {
		if e.What != "answer" {
			continue
		}
		answers++
		if e.Answer != "re "+e.Nonce && e.Answer != "cancel" {
			w.t.Errorf("the server asked for %q and was told %q", e.Nonce, e.Answer)
		}
	}
	if answers == 0 {
		w.t.Error("the server was told nothing: nothing was shown")
	}
}
