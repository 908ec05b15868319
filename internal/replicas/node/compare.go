package node

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/dnspeers"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// atOnce is how many replicas are asked at the same time.
const atOnce = 16

// Compare asks the engine, or the names, who lives, and each of those whether it and this one
// accept each other. now is the clock of this machine. It is for a Node that does not Join:
// nobody hears of it.
func (n *Node) Compare(ctx context.Context, now func() time.Time) replicas.Comparison {
	var out replicas.Comparison
	var living []replicas.Replica
	switch e := n.engine.(type) {
	case *member.Member:
		living, out.Away = e.Living(ctx)
	case *dnspeers.Engine:
		living, out.Away = addressed(ctx, e)
	}
	for _, c := range n.compareAll(ctx, living, now) {
		if !absent(c) {
			out.Members = append(out.Members, c)
		}
	}
	return out
}

// addressed returns the replicas that names stand for, of which the addresses alone are known.
func addressed(ctx context.Context, e *dnspeers.Engine) (out []replicas.Replica, err error) {
	addrs, err := e.Addresses(ctx)
	for _, addr := range addrs {
		out = append(out, replicas.Replica{Addr: addr})
	}
	return out, err
}

// compareAll compares this replica with others.
func (n *Node) compareAll(ctx context.Context, others []replicas.Replica, now func() time.Time) []replicas.Compared {
	out := make([]replicas.Compared, len(others))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, r := range others {
		places <- struct{}{}
		all.Go(func() { // ends within the bound of the group's Compare
			defer func() { <-places }()
			out[i] = n.group.Compare(ctx, r, now)
			out[i].Ready = r.Ready
		})
	}
	all.Wait()
	return out
}

// absent reports whether nobody answers at an address that only a name has: there need not be
// a replica.
func absent(c replicas.Compared) bool {
	return c.Instance == "" && len(c.Differs) == 1 && c.Differs[0].What == replicas.DiffersAnswer
}
