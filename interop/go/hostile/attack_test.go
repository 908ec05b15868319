//go:build linux

package hostile

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// attackAddr is the variable that makes this program the attackers of an address.
	attackAddr = "HOSTILE_ATTACK"
	// attackCPU is how many cores the attackers take together.
	attackCPU = 0.5
	// attackHold is how long an attack waits for an answer, or holds what it has got.
	attackHold = 10 * time.Second
)

// An attack is repeated, each time on a goroutine of its own, as fast as every says and
// the pace allows.
type attack struct {
	name  string
	every time.Duration
	do    func(ctx context.Context, c *client, n int)

	tries atomic.Int64
}

// Errors of attackers are what they are meant to get.
var attacks = []*attack{
	{name: "Content-Length", every: time.Millisecond, do: func(ctx context.Context, c *client, _ int) {
		if conn, err := c.announce(ctx); err == nil {
			holdConn(ctx, conn)
		}
	}},
	{name: "capabilities", every: 3 * time.Millisecond, do: func(ctx context.Context, c *client, n int) {
		large := megabyte // refused, every other is just within the limit
		if n%2 == 0 {
			large = megabyte[:15<<10]
		}
		_, _, _ = c.tool(ctx, "echo", fmt.Sprintf(`{"experimental":{"x%d":%q}}`, n, large), "")
	}},
	{name: "subscriptions", every: 3 * time.Millisecond, do: func(ctx context.Context, c *client, n int) {
		_, _, _, _ = c.send(ctx, modernHeaders("subscriptions/listen", ""), listen("1", resources(n, 30, 8000)))
	}},
	{name: "parked calls", every: 3 * time.Millisecond, do: func(ctx context.Context, c *client, n int) {
		tool := "ask" // parked here once it is answered with the question
		if n%2 == 0 {
			tool = "hang"
		}
		_, _, _ = c.tool(ctx, tool, `{"elicitation":{"form":{}}}`, megabyte)
	}},
}

// attackAll attacks addr until the process is asked to end, and says how often.
func attackAll(addr string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := newPace(attackCPU)
	var all sync.WaitGroup
	for i, a := range attacks {
		all.Go(func() { a.run(ctx, p, newClient(addr, fmt.Sprintf("127.0.0.%d", i+2))) })
	}
	all.Wait()
	for _, a := range attacks {
		fmt.Fprintf(os.Stdout, "%d of %s\n", a.tries.Load(), a.name)
	}
}

// run repeats the attack until ctx ends, and waits for what it has begun.
func (a *attack) run(ctx context.Context, p *pace, c *client) {
	tick := time.NewTicker(a.every)
	defer tick.Stop()
	var under sync.WaitGroup
	defer under.Wait()
	for n := 0; p.wait(ctx); n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		a.tries.Add(1)
		under.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, attackHold)
			defer cancel()
			a.do(ctx, c, n)
		})
	}
}
