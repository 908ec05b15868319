package dnspeers

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// patience bounds a lookup, and a hello.
	patience = replicas.Heartbeat
	// most is how many addresses are asked, and atOnce how many at the same time.
	most, atOnce = 256, 16
)

// run has a round at each heartbeat, until Close.
func (e *Engine) run(ctx context.Context) {
	defer close(e.done)
	for {
		t := time.NewTimer(replicas.Heartbeat)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-e.kick:
			t.Stop()
		case <-t.C:
		}
		e.round(ctx)
	}
}

// round looks the names up, and asks each address who it is.
func (e *Engine) round(ctx context.Context) {
	addrs, err := e.addresses(ctx)
	answers := e.ask(ctx, e.withKnown(addrs))
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() == nil {
		now := time.Now()
		looked, heard := e.lookedLocked(now, err), e.hearLocked(now, answers)
		e.publishLocked(looked || heard)
	}
}

// addresses returns those of all names. It fails if no name can be looked up.
func (e *Engine) addresses(ctx context.Context) (addrs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := false
	for _, name := range e.opts.Names {
		host, port, _ := net.SplitHostPort(name)
		hosts, lerr := e.opts.Lookup(ctx, host)
		nobody := (*net.DNSError)(nil)
		if lerr == nil || errors.As(lerr, &nobody) && nobody.IsNotFound {
			found = true
		} else {
			err = lerr
		}
		for _, h := range hosts {
			addrs = append(addrs, net.JoinHostPort(h, port))
		}
	}
	if found {
		err = nil
	}
	return addrs, err
}

// withKnown returns the addresses to ask: first those of replicas that live, which a name may
// not have for a moment. Of the others, other ones come first in each round: those of replicas
// that are long gone may not answer at all, and then there is no time for all.
func (e *Engine) withKnown(addrs []string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := make([]string, 0, len(e.members)+len(addrs))
	for _, m := range e.members {
		known = append(known, m.Addr)
	}
	slices.Sort(addrs)
	addrs = slices.DeleteFunc(slices.Compact(addrs), func(addr string) bool { return slices.Contains(known, addr) })
	if len(addrs) > 0 {
		first := e.rounds * atOnce % len(addrs)
		known = append(append(known, addrs[first:]...), addrs[:first]...)
	}
	e.rounds++
	if len(known) > most {
		e.opts.Logger.Warn("the names of replicas have too many addresses: some are not asked", "addresses", len(known), "limit", most)
		known = known[:most]
	}
	return known
}

// ask returns those that have answered.
func (e *Engine) ask(ctx context.Context, addrs []string) (answers []replicas.Replica) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var (
		mu   sync.Mutex // guards answers
		wg   sync.WaitGroup
		next = make(chan string)
	)
	for range min(atOnce, len(addrs)) {
		wg.Go(func() {
			for addr := range next {
				r, err := e.opts.Hello(ctx, addr)
				if err != nil {
					e.opts.Logger.Debug("no replica answers", "addr", addr, "error", err)
					continue // one that starts, or has ended
				}
				mu.Lock()
				answers = append(answers, r)
				mu.Unlock()
			}
		})
	}
	for _, addr := range addrs {
		next <- addr
	}
	close(next)
	wg.Wait()
	return answers
}

// lookedLocked notes whether the names could be looked up, and reports whether that is news.
func (e *Engine) lookedLocked(now time.Time, err error) (news bool) {
	switch {
	case err == nil:
		news = !e.away.IsZero()
		if news {
			e.opts.Logger.Info("the names of the replicas are known again", "away", now.Sub(e.away).Round(time.Millisecond))
			e.opts.Observer.Away(false)
		}
		e.heard, e.away = now, time.Time{}
		return news
	case e.away.IsZero() && now.Sub(e.heard) >= 2*replicas.Heartbeat:
		e.away = now
		if !e.heard.IsZero() {
			e.away = e.heard
		}
		e.opts.Logger.Warn("the names of the replicas can't be looked up: those that are known are asked still", "since", e.away, "error", err)
		e.opts.Observer.Away(true)
		news = true
	}
	e.opts.Observer.Failed()
	return news
}

// hearLocked takes in who has answered, and reports whether that is news.
func (e *Engine) hearLocked(now time.Time, answers []replicas.Replica) (news bool) {
	for _, r := range answers {
		if r.Instance == e.self.Instance {
			e.findLocked()
			continue
		}
		m := e.members[r.Instance]
		if m == nil {
			m = new(heard)
			e.members[r.Instance] = m
			e.opts.Logger.Info("a replica joined", "replica", r.Instance, "addr", r.Addr, "version", r.Version)
			e.opts.Observer.Moved("joined")
		}
		if r.Draining && !m.Draining {
			e.opts.Logger.Info("a replica takes no new work", "replica", r.Instance)
			e.opts.Observer.Moved("draining")
		}
		news = news || m.Replica != r
		m.Replica, m.at = r, now
	}
	for instance, m := range e.members {
		if now.Sub(m.at) >= replicas.MemberTTL {
			delete(e.members, instance)
			e.opts.Logger.Warn("a replica is silent", "replica", instance, "addr", m.Addr)
			e.opts.Observer.Moved("silent")
			news = true
		}
	}
	return news
}

// findLocked notes that this replica has been found.
func (e *Engine) findLocked() {
	if !wake.Closed(e.found) {
		close(e.found)
	}
}

// publishLocked replaces the view, and closes the last one's Changed if there is news.
func (e *Engine) publishLocked(news bool) {
	v := *e.view.Load()
	v.Self, v.Heard, v.Away = e.self, e.heard, e.away
	last := e.changed
	if news {
		e.changed = make(chan struct{})
		v.Members = e.membersLocked()
		e.opts.Observer.Members(len(v.Members))
	}
	v.Changed = e.changed
	e.view.Store(&v)
	if news {
		close(last)
	}
}

func (e *Engine) membersLocked() []replicas.Replica {
	var all []replicas.Replica
	if e.state == joined {
		all = append(all, e.self)
	}
	for _, m := range e.members {
		all = append(all, m.Replica)
	}
	slices.SortFunc(all, func(a, b replicas.Replica) int { return strings.Compare(a.Instance, b.Instance) })
	return all
}
