package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// sinceTell is the first revision that writes heartbeats of others, and sinceAsk the first one that
	// says what it holds.
	sinceTell = 2
	sinceAsk  = 4
)

var (
	errBefore      = errors.New("a replica of this version writes no heartbeats of others")
	errSaysNothing = errors.New("a replica of this version does not say what it holds")
	// errSilent says that the answer of a replica is no promise for all of an outage, since its others
	// take it for dead, and don't ask it whether it hears the engine.
	errSilent = errors.New("a replica that was silent does not hold it, and may claim it")
)

// A neighborhood asks the other replicas, without the engine.
type neighborhood struct {
	neighbors replicas.Neighbors // nil if there are none; read-only after Join
	asking    sync.WaitGroup     // what they are asked; Close waits for it
}

// Meet implements [replicas.Engine].
func (n *neighborhood) Meet(others replicas.Neighbors) { n.neighbors = others }

// tellAll asks replicas to write a heartbeat of this one, and calls wrote for each that has.
func (n *neighborhood) tellAll(ctx context.Context, to []replicas.Replica, text []byte, wrote func(by replicas.Replica)) []error {
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for i, r := range to {
		all.Go(func() {
			if errs[i] = errBefore; r.Revision >= sinceTell {
				errs[i] = n.neighbors.Tell(ctx, r, text)
			}
			if errs[i] == nil {
				wrote(r)
			}
		})
	}
	all.Wait()
	return errs
}

// agreed reports whether all that were asked have said that they don't hear the engine and know
// nobody else. If all know the same ones, it returns those, in order.
func agreed(self string, to []replicas.Replica, errs []error) (away bool, among []string) {
	asked := []string{self}
	for _, r := range to {
		asked = append(asked, r.Instance)
	}
	slices.Sort(asked)
	among = asked
	for _, err := range errs {
		if !errors.Is(err, replicas.ErrAway) && !errors.Is(err, replicas.ErrGone) {
			return false, nil
		}
		away := (*replicas.AwayError)(nil)
		if !errors.As(err, &away) || len(away.Knows) == 0 { // it is of an earlier version, or gone
			continue
		}
		if slices.ContainsFunc(away.Knows, func(instance string) bool {
			_, found := slices.BinarySearch(asked, instance)
			return !found
		}) {
			return false, nil // somebody whom this replica does not know may hear the engine
		}
		if len(away.Knows) != len(asked) {
			among = nil
		}
	}
	return true, among
}

// askAll asks all others who holds key, also those that were silent when the engine was heard last: they
// may be back. One that holds it may be the only one that answers.
func (n *neighborhood) askAll(ctx context.Context, key string, living, silent []replicas.Replica) (c replicas.Claim, err error) {
	to := slices.Concat(living, silent)
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	epochs, errs := make([]uint64, len(to)), make([]error, len(to))
	var all sync.WaitGroup
	for i, r := range to {
		all.Go(func() {
			if errs[i] = errSaysNothing; r.Revision >= sinceAsk {
				epochs[i], errs[i] = n.neighbors.Ask(asked, r, key)
			}
			if errs[i] == nil && epochs[i] == 0 && i >= len(living) {
				errs[i] = errSilent
			}
		})
	}
	all.Wait()
	for i, r := range to {
		if errs[i] == nil && epochs[i] > c.Epoch {
			c = replicas.Claim{Holder: r, Epoch: epochs[i]}
		}
	}
	if c.Epoch > 0 {
		return c, nil
	}
	for _, each := range errs {
		if each != nil && !errors.Is(each, replicas.ErrGone) {
			err = each
		}
	}
	if ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	if err != nil {
		return c, fmt.Errorf("%w: %w", replicas.ErrUnasked, err)
	}
	return c, nil
}
