package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/dnspeers"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// judgeEvery is how often it is judged whether this replica can serve, until it can, and
	// lookEvery how often after that.
	judgeEvery = replicas.Heartbeat
	lookEvery  = time.Minute
	// aloneAfter is how long a replica waits for an engine or others that are out of reach,
	// before it serves without: they may be down for long.
	aloneAfter = 30 * time.Second
	// refusedApart is by how much clocks differ when requests are refused.
	refusedApart = 3 * replicas.ClockTolerance
)

// A Standing says how a replica stands with the others.
type Standing struct {
	// Ready says that it can serve. Once it is, it stays so: a cause that all have would turn
	// all off.
	Ready bool
	// Reasons say why it is not, or why it serves less than it could. Empty if all is well.
	Reasons []string
}

// judging is what finds out the Standing of a Node. It is safe for concurrent use.
type judging struct {
	running sync.WaitGroup // judge
	stop    context.CancelFunc

	mu  sync.Mutex // guards the field below
	now Standing
}

// Standing returns how this replica stands with the others.
func (n *Node) Standing() Standing {
	n.standing.mu.Lock()
	defer n.standing.mu.Unlock()
	return n.standing.now
}

// beginJudging judges now and then whether this replica can serve, until Close.
func (n *Node) beginJudging() {
	ctx, stop := context.WithCancel(context.Background())
	n.standing.stop = stop
	n.standing.running.Go(func() {
		begun := time.Now()
		for pause := time.Duration(0); wake.Wait(ctx, pause) == nil; {
			n.judge(ctx, time.Since(begun))
			if pause = judgeEvery; n.Standing().Ready {
				pause = lookEvery
			}
		}
	})
}

func (s *judging) end() {
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
}

// judge finds out how this replica stands, after it has waited so long.
func (n *Node) judge(ctx context.Context, waited time.Duration) {
	t := n.trouble(ctx)
	if ctx.Err() != nil {
		return
	}
	ready := len(t.refused) == 0 && (len(t.away) == 0 || waited >= aloneAfter)
	n.standing.mu.Lock()
	was := n.standing.now
	now := Standing{Ready: was.Ready || ready, Reasons: slices.Concat(t.refused, t.away, t.told)}
	n.standing.now = now
	n.standing.mu.Unlock()
	n.opts.Observer.Stands(now.Ready, len(now.Reasons) > 0)
	switch {
	case len(now.Reasons) > 0 && !slices.Equal(now.Reasons, was.Reasons):
		n.opts.Logger.Warn("this replica can't work with the others as it should", "ready", now.Ready, "reasons", now.Reasons)
	case len(now.Reasons) == 0 && len(was.Reasons) > 0:
		n.opts.Logger.Info("this replica works with the others again", "ready", now.Ready)
	}
	if now.Ready && !was.Ready {
		n.tellReady()
	}
}

// tellReady tells the others that this replica serves: who starts later and is refused by it is
// the one that has to be mended.
func (n *Node) tellReady() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.joined {
		n.self.Ready = true
		n.engine.Update(n.self)
	}
}

// A trouble is what keeps a replica from working with the others as it should.
type trouble struct {
	refused []string // why it can't serve before that is mended
	away    []string // what is out of reach, and may come soon
	told    []string // what somebody should mend: it serves as well with it
}

// trouble finds out what there is at this moment.
func (n *Node) trouble(ctx context.Context) (t trouble) {
	if m, ok := n.engine.(*member.Member); ok {
		switch why, denied := m.Trouble(ctx); {
		case denied:
			t.refused = append(t.refused, "the engine: "+why)
		case why != "":
			t.away = append(t.away, "the engine: "+why)
		}
	}
	var others, refusing, readyRefusing int
	self := n.group.Self().Instance
	for _, c := range n.compareAll(ctx, n.others(ctx), replicas.Now) {
		if c.Instance == self {
			continue // it was asked at one of the addresses
		}
		others++
		if isRefusing := t.take(c); isRefusing {
			refusing++
			if c.Ready {
				readyRefusing++
			}
		}
	}
	if refusing > 0 && readyRefusing == 0 && refusing < others { // it is not this replica that differs
		t.refused, t.away = nil, append(t.refused, t.away...)
	}
	return t
}

// take takes in what differs at another replica, and reports whether one refuses the other.
func (t *trouble) take(c replicas.Compared) (isRefusing bool) {
	for _, d := range c.Differs {
		text := fmt.Sprintf("replica %s at %s: %s", cmp.Or(c.Instance, "?"), c.Addr, d.Text)
		switch {
		case d.What == replicas.DiffersClock && c.Clock.Abs() < refusedApart: // they accept each other
			t.told = append(t.told, text)
		case d.What == replicas.DiffersClock, d.What == replicas.DiffersKeys, d.What == replicas.DiffersTLS, d.What == replicas.DiffersVersion:
			isRefusing = true
			t.refused = append(t.refused, text)
		case c.Instance != "": // an address that does not answer is no mistake
			t.away = append(t.away, text)
		}
	}
	return isRefusing
}

// others returns all other replicas that live and are not about to end. Of those that names
// stand for, the addresses alone are known, one of which may be that of this replica.
func (n *Node) others(ctx context.Context) (out []replicas.Replica) {
	if e, ok := n.engine.(*dnspeers.Engine); ok && !n.Standing().Ready { // and then those that were found
		out, _ = addressed(ctx, e) // names that nobody knows yet are no mistake
		return out
	}
	view := n.engine.View()
	for _, r := range view.Members {
		if r.Instance != view.Self.Instance && !r.Draining {
			out = append(out, r)
		}
	}
	return out
}
