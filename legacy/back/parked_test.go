package back

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// parking serves n calls whose clients answer only when all are parked, in random
// order, each for itself.
func parking(t *testing.T, b *Back, n int) {
	var parked atomic.Int64
	all := make(chan struct{})
	turns := make([]chan struct{}, n)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			who := fmt.Sprintf("caller-%d", i)
			answer := fmt.Sprintf(`{"action":"accept","content":{"me":%q}}`, who)
			x := &backtest.Client{Answer: func(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
				if got, _ := wire.GetString(q.Params, "message"); got != who {
					t.Errorf("%s was asked what is for %s", who, got)
				}
				if parked.Add(1) == int64(n) {
					close(all)
				}
				select {
				case <-turns[i]:
				case <-ctx.Done():
				}
				return mcp.InputResponse{Result: []byte(answer)}, context.Cause(ctx)
			}}
			if got, err := body(b.Serve(t.Context(), askable(who), x)); err != nil || got != said(answer) {
				t.Errorf("%s got %s, %v", who, got, err)
			}
		})
	}
	<-all
	for _, i := range rand.Perm(n) {
		close(turns[i])
	}
	calls.Wait()
	left := func() (n int) {
		for _, s := range b.sessions("test/1") {
			s.Calls.Each(func(*upstream.Call) { n++ })
			s.inputs.mu.Lock()
			n += len(s.inputs.pending)
			s.inputs.mu.Unlock()
		}
		return n
	}
	for end := time.Now().Add(bridgetest.Patience); left() > 0 && time.Now().Before(end); { // an answer's last moment
		_ = wake.Wait(t.Context(), time.Millisecond)
	}
	if n := left(); n > 0 {
		t.Errorf("%d calls and questions were left behind", n)
	}
}

func TestM2L20FiftyParkedOnOneChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := 0
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			children++
			a.Call = func(c *legacytest.ServerCall) string {
				time.Sleep(time.Millisecond)
				m := c.Elicit()
				return said(string(m.Result))
			}
		})
		parking(t, b, 50)
		if children != 1 {
			t.Errorf("%d children were started, want one", children)
		}
	})
}

func TestM2L20AThousandParkedOnOneServer(t *testing.T) {
	t.Parallel()
	p := legacytest.NewHTTPServer(t)
	p.Quiet = true
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		who, _ := wire.GetString(wire.Get(m.Params, "arguments"), "who")
		send := legacytest.StartSSE(w)
		if a, ok := p.Ask(r.Context(), send, "elicitation/create", fmt.Sprintf(`{"message":%q}`, who)); ok {
			send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said(string(a.Result)))
		}
	}
	parking(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}), 1000)
}

// A question that arrives while its session is closed, and has its call parked, is put before the
// session starts nothing more: else the call would wait for it for ever.
func TestCloseWaitsForAQuestionThatIsRegistered(t *testing.T) {
	b := newAsker(t, Options{}, func(*legacytest.Server) {})
	req := askable("ada")
	s, release, err := b.session(t.Context(), req.Profile, false)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	closed := make(chan struct{})
	s.inputs.mu.Lock() // as a question has, from before its call is parked until its goroutine is started
	go func() {        // ends with the unlock
		defer close(closed)
		s.Close(context.Background())
	}()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); runtime.Gosched() {
		if !s.Start(func() {}) {
			t.Error("the session starts nothing more while a question is registered")
			break
		}
	}
	s.inputs.mu.Unlock()
	<-closed
}
