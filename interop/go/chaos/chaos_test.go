package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	listeners = 200
	callers   = 8
	askers    = 4
	items     = 60
)

// TestM2L37Chaos has a server die, hang and lie under listen streams and steady
// calls. KILLS says how often it dies; the rest is in proportion.
//
// In the end every listener has the last value of all it follows (M2L-37), every
// call was answered once (M2L-10), no tool ran twice (M2L-03), and nothing is
// left behind (M2L-36).
func TestM2L37Chaos(t *testing.T) {
	t.Parallel()
	for _, stdio := range []bool{false, true} {
		t.Run(setup{stdio: stdio}.String(), func(t *testing.T) {
			t.Parallel() // most of the time the server rests, or is away
			var p *proxy
			s := setup{stdio: stdio, server: ", linger: 200ms, parked_ttl: 5s, gather: 2ms, timeouts: {connect: 2s, request: 2s}"}
			s.before = func(base string) string { p = newProxy(t, base); return p.URL }
			c := &chaos{world: newWorld(t, s), proxy: p, rng: rand.New(rand.NewPCG(rig.Seed(t), 1)), last: make(map[string]int),
				calls: make(map[string]string), done: make(map[weather]int)}
			c.tool(t.Context(), "mark", map[string]any{"nonce": "warm"}, "")
			for i := range items {
				c.last[fmt.Sprintf("res://item/%02d", i)] = 1
			}
			before := c.quiet()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			wait := c.begin(ctx)
			c.storm(s.kills(t))
			c.settle()
			stop()
			wait()
			c.judge()
			c.wantNoMore(before, parked, "mcpbridge_listen_streams", "mcpbridge_index_topics", "mcpbridge_index_pairs", goroutines, files)
		})
	}
}

// kills is how often the server dies. A child that dies young is started again later
// and later, up to half a minute, so that a thousand deaths would take a night: it
// gets a tenth, and no fewer than CI's.
func (s setup) kills(t *testing.T) int {
	n := int(rig.Int(t, "KILLS", 8))
	if s.stdio {
		n = max(n/10, min(n, 8))
	}
	return n
}

// A chaos is a world in which all goes wrong.
type chaos struct {
	*world
	proxy     *proxy // nil with stdio
	rng       *rand.Rand
	listeners []*listener
	stopCalls context.CancelFunc
	callsDone sync.WaitGroup
	done      map[weather]int
	kills     int

	last map[string]int // versions

	// mu guards the fields below.
	mu       sync.Mutex
	calls    map[string]string // nonce -> how it was answered: result or error
	problems []string
}

// begin starts listeners and calls. What it returns waits for the listeners,
// which end with ctx.
func (c *chaos) begin(ctx context.Context) (wait func()) {
	c.t.Helper()
	var wg sync.WaitGroup
	for i := range listeners {
		uris := make([]string, 0, 3)
		for _, n := range c.rng.Perm(items)[:1+c.rng.IntN(3)] {
			uris = append(uris, fmt.Sprintf("res://item/%02d", n))
		}
		l := newListener(c.world, uris)
		c.listeners = append(c.listeners, l)
		wg.Go(func() { pause(ctx, time.Duration(i)*time.Millisecond); l.run(ctx) })
	}
	calling, stop := context.WithCancel(ctx)
	c.stopCalls = stop
	for i := range callers + askers {
		c.callsDone.Go(func() { c.call(calling, i, i >= callers) })
	}
	rig.Until(c.t, recovery, "listeners have what is there", func() string {
		return c.behind()
	})
	return wg.Wait
}

// behind says which listener does not have the last versions.
func (c *chaos) behind() string {
	for _, l := range c.listeners {
		if complaint := l.behind(c.last); complaint != "" {
			return complaint
		}
	}
	return ""
}

// call makes calls until ctx ends, each of which must be answered once. Those
// that ask are answered, too.
func (c *chaos) call(ctx context.Context, who int, asks bool) {
	for i := 0; ctx.Err() == nil; i++ {
		nonce := fmt.Sprintf("caller %d call %d", who, i)
		args, name := map[string]any{"nonce": nonce, "delay": i % 30}, "mark"
		if asks {
			name = "ask"
		}
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
		got := c.tool(patient, name, args, "")
		for got.err == nil && got.again.state != "" {
			if !got.again.asks(nonce) {
				c.problem("%s was asked %s", nonce, got.text)
			}
			got = c.tool(patient, name, args, got.again.retry())
		}
		cancel()
		c.answered(nonce, &got)
		pause(ctx, 20*time.Millisecond)
	}
}

func (c *chaos) answered(nonce string, got *answer) {
	how := "result"
	switch {
	case got.err != nil:
		c.problem("%s was not answered once: %v", nonce, got.err)
		return
	case got.problem() != "":
		how = "error"
	case got.nonce != nonce:
		c.problem("%s was answered %s", nonce, got.text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[nonce] = how
}

func (c *chaos) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// storm kills the server so many times, with bad weather and changes between.
func (c *chaos) storm(kills int) {
	c.t.Helper()
	for c.kills < kills {
		for range 1 + c.rng.IntN(4) {
			now := fair
			if c.proxy != nil {
				now = storms[c.rng.IntN(len(storms))]
				c.proxy.turn(now)
			}
			c.done[now]++
			c.touch()
			time.Sleep(time.Duration(50+c.rng.IntN(400)) * time.Millisecond)
			if c.proxy != nil {
				c.proxy.turn(fair)
			}
			c.touch()
			time.Sleep(time.Duration(c.rng.IntN(300)) * time.Millisecond)
		}
		if !c.kill() {
			time.Sleep(100 * time.Millisecond) // mcpbridge has yet to start it
			continue
		}
		c.kills++
		time.Sleep(time.Duration(c.rng.IntN(500)) * time.Millisecond)
		if !c.setup.stdio {
			c.startServer()
		}
	}
}

// touch makes new versions of a few resources, if the server is there.
func (c *chaos) touch() {
	uris := url.Values{}
	for range 1 + c.rng.IntN(4) {
		uris.Add("uri", fmt.Sprintf("res://item/%02d", c.rng.IntN(items)))
	}
	res, err := c.us.Post("http://"+c.addr+"/admin/touch?"+uris.Encode(), "", http.NoBody)
	if err == nil {
		_ = res.Body.Close() // what it did is in the ledger
	}
}

// judge holds what clients were told against what the server did.
func (c *chaos) judge() {
	c.t.Helper()
	ran, _ := c.ran()
	how := make(map[string]int)
	for nonce, outcome := range c.calls {
		how[outcome]++
		if outcome == "result" && ran[nonce] != 1 {
			c.t.Errorf("%s has a result and ran %d times", nonce, ran[nonce])
		}
	}
	unseen := 0
	for nonce, n := range ran {
		if n > 1 {
			c.t.Errorf("%s ran %d times", nonce, n)
		}
		if c.calls[nonce] == "error" {
			unseen++
		}
	}
	streams, narrowed := 0, 0
	problems := c.problems
	for _, l := range c.listeners {
		streams, narrowed = streams+l.streams, narrowed+l.narrowed
		problems = append(problems, l.problems...)
	}
	for i, p := range problems {
		if i == 10 {
			c.t.Errorf("and %d more", len(problems)-i)
			break
		}
		c.t.Error(p)
	}
	if how["result"] == 0 || how["error"] == 0 {
		c.t.Errorf("calls were answered %v, want both: else nothing was shown", how)
	}
	c.wantOwnAnswers()
	c.t.Logf("%d kills, weather %v, requests in it %v; calls answered %v, of those with errors %d had run; %d streams for %d listeners, %d narrowed",
		c.kills, c.done, c.hurtBy(), how, unseen, streams, len(c.listeners), narrowed)
}

func (c *chaos) hurtBy() map[weather]int {
	if c.proxy == nil {
		return nil
	}
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	return maps.Clone(c.proxy.hurt)
}
