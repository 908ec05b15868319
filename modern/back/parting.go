package back

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What a server does about a listen request that was cancelled: it need not answer, and
// go-sdk's servers do.
//
// Spec: 2026-07-28, basic/patterns/cancellation.
const (
	farewellUnknown int32 = iota
	farewellAnswer
	farewellNone
)

// endWaits are how long a command has to end a listen stream that was cancelled, by what it
// does about that. One that answers says when it has; another is given some time.
var endWaits = map[int32]time.Duration{
	farewellUnknown: 500 * time.Millisecond,
	farewellAnswer:  30 * time.Second,
	farewellNone:    50 * time.Millisecond,
}

// errEndedLate is why a stream is opened again.
var errEndedLate = errors.New("the server ended an earlier stream after this one had begun, and may have forgotten what both have")

// A parting is the end of a stream that this side has cancelled.
type parting struct {
	since time.Time     // when it was cancelled; conn.mu guards it
	late  bool          // another stream was asked for before it had ended; conn.mu guards it
	over  chan struct{} // closed when the server has answered, or the connection has ended
}

// part removes a stream: further messages for it are dropped, but its response is waited for.
// It reports false if the stream was removed before.
func (p *conn) part(s *connListen) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listens[s.c.ID] == nil {
		return false
	}
	delete(p.listens, s.c.ID)
	s.parting.since, p.parting = time.Now(), s
	return true
}

// awaitParted waits until a command has ended the stream that was cancelled last. Servers on
// go-sdk keep one list for each session, and forget it when they end a stream, which may be
// after they have accepted another.
func (p *conn) awaitParted(ctx context.Context) error {
	p.mu.Lock()
	last := p.parting
	p.mu.Unlock()
	if last == nil || p.link.opts.URL != "" {
		return nil
	}
	before := p.link.farewell.Load()
	wait := time.NewTimer(time.Until(last.parting.since.Add(endWaits[before])))
	defer wait.Stop()
	select {
	case <-last.parting.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last.parting.late = true
	p.link.farewell.CompareAndSwap(farewellUnknown, farewellNone)
	return nil
}

// parted takes the response to a listen request that was cancelled, and reports whether it is
// one. If it is late, streams that were opened since are opened again.
func (p *conn) parted(id wire.ID) bool {
	p.mu.Lock()
	last := p.parting
	if last == nil || !last.c.Is(id) {
		p.mu.Unlock()
		return false
	}
	p.parting = nil
	close(last.parting.over)
	p.link.farewell.Store(farewellAnswer)
	var doubtful []*connListen
	if last.parting.late {
		for _, s := range p.listens {
			doubtful = append(doubtful, s)
		}
	}
	p.mu.Unlock()
	for _, s := range doubtful {
		if p.part(s) {
			p.cancel(s.c, errEndedLate)
			s.end(errEndedLate)
		}
	}
	return true
}
