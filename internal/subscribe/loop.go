package subscribe

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// run adds first, and then the queries from more. It returns when no topics are needed,
// or ctx has ended; then it has answered all queries, and all its goroutines have ended.
func (b *Book[S]) run(ctx context.Context, first *Query, more <-chan *Query) {
	ctx, stop := context.WithCancel(ctx)
	defer b.end(ctx, stop)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	b.readClock()
	b.add(first)
	for b.tick(); !b.idle(); b.tick() {
		b.driver.Pump(ctx)
		timeout := wake.Due()
		if pause := b.sleep(); pause > 0 {
			timer.Reset(pause)
			timeout = timer.C
		}
		if !b.wait(ctx, more, timeout) {
			return
		}
	}
}

func (b *Book[S]) readClock() { b.clock = time.Since(b.born) + 1 }

// wait waits for events and handles them. It returns false if ctx has ended.
func (b *Book[S]) wait(ctx context.Context, more <-chan *Query, timeout <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case q := <-more:
		b.readClock()
		b.add(q)
	case <-b.poked:
		b.readClock()
		b.leave()
	case report := <-b.reports:
		b.readClock()
		report()
	case <-b.awaited:
		b.readClock()
		b.awaited = nil
		b.then()
	case <-timeout:
		b.readClock()
	}
	return true
}

// end waits for all goroutines, and answers those who wait with the reason.
func (b *Book[S]) end(ctx context.Context, stop context.CancelFunc) {
	stop()
	b.driver.Close()
	b.workers.Wait()
	for _, q := range b.waiting {
		q.finish(context.Cause(ctx))
	}
}

// idle reports whether there is nothing to do any more.
func (b *Book[S]) idle() bool {
	return b.promises == 0 && len(b.waiting) == 0 && !b.driver.Busy()
}

// tick does what is due.
func (b *Book[S]) tick() {
	b.expire()
	for t := b.agenda.pop(b.clock); t != nil; t = b.agenda.pop(b.clock) {
		if b.Tracks(t) {
			b.look(t)
			b.agenda.add(t)
		}
	}
}

// look handles a topic that is due on the agenda: it checks whether a topic that has lost a
// subscriber has others, and calls the driver's Look.
func (b *Book[S]) look(t *Topic[S]) {
	if t.dueAt <= b.clock {
		t.dueAt = 0
	}
	if t.fadeAt != 0 && t.fadeAt <= b.clock {
		t.fadeAt = 0
		if b.up.Changes.Wanted(t.Topic) {
			b.setFading(t, false)
		} else {
			b.Withdraw(t)
		}
	}
	b.driver.Look(t)
}

// sleep returns how long the loop may wait.
func (b *Book[S]) sleep() time.Duration {
	if b.idle() || len(b.waiting) > 0 && b.waiting[0].closed {
		return 0
	}
	at := Earliest(b.agenda.next(), b.driver.Wake())
	if len(b.waiting) > 0 {
		at = Earliest(at, b.deadline(b.waiting[0]))
	}
	if at == 0 {
		return time.Hour
	}
	return max(at-b.clock, 0)
}
