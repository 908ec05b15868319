package back

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
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

// maxPartings bounds the cancelled streams that a connection remembers: many servers never
// answer them.
const maxPartings = 16

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
	s.parting.since = time.Now()
	if p.partings = append(p.partings, s); len(p.partings) > maxPartings {
		p.partings = slices.Delete(p.partings, 0, 1)
	}
	return true
}

// partingLocked returns the place of the stream with an id among those that were cancelled;
// negative if it is none.
func (p *conn) partingLocked(id wire.ID) int {
	return slices.IndexFunc(p.partings, func(s *connListen) bool { return s.c.Is(id) })
}

// lastParting returns the stream that was cancelled last, if it has not been answered.
func (p *conn) lastParting() *connListen {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.partings) == 0 {
		return nil
	}
	return p.partings[len(p.partings)-1]
}

// awaitParted waits until a command has ended the stream that was cancelled last. Servers on
// go-sdk keep one list for each session, and forget it when they end a stream, which may be
// after they have accepted another.
func (p *conn) awaitParted(ctx context.Context) error {
	last := p.lastParting()
	if last == nil || p.link.opts.URL != "" {
		return nil
	}
	wait := time.NewTimer(wake.Positive(time.Until(last.parting.since.Add(endWaits[p.link.farewell.Load()]))))
	defer wait.Stop()
	select {
	case <-last.parting.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		p.link.farewell.CompareAndSwap(farewellUnknown, farewellNone)
	}
	return nil
}

// parted takes the response to a listen request that was cancelled, and reports whether it is
// one. If it is late, streams that were opened since are opened again.
func (p *conn) parted(id wire.ID) bool {
	s, doubtful := p.takeParting(id)
	if s == nil {
		return false
	}
	p.link.farewell.Store(farewellAnswer)
	for _, o := range doubtful {
		p.doubt(o)
	}
	p.link.heeded(s.c.scope)
	return true
}

// doubt cancels a stream that the server may have forgotten, so that it is opened again.
func (p *conn) doubt(s *connListen) {
	if p.part(s) {
		p.cancel(s.c, errEndedLate)
		s.end(errEndedLate)
	}
}

// sent notes that the request for a stream has been written, and reports whether the stream has been
// put in doubt before: servers ignore the cancellation of what they have not been asked for yet.
func (p *conn) sent(s *connListen) (inDoubt bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.isSent = true
	return s.inDoubt
}

// takeParting returns the cancelled stream that a response ends, and the streams that it puts
// in doubt; nil if it ends none. Those that are being asked for are put in doubt once they are.
func (p *conn) takeParting(id wire.ID) (s *connListen, doubtful []*connListen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.partingLocked(id)
	if i < 0 {
		return nil, nil
	}
	s = p.partings[i]
	p.partings = slices.Delete(p.partings, i, i+1)
	close(s.parting.over)
	if !s.parting.late || p.link.opts.URL != "" {
		return s, nil
	}
	for _, o := range p.listens {
		if o.inDoubt = true; o.isSent {
			doubtful = append(doubtful, o)
		}
	}
	return s, doubtful
}

// heedsParted notes that a server acknowledges a listen request that was given up: it
// responds again.
func (p *conn) heedsParted(m *wire.Message) {
	id, named := protocol.SubscriptionID(m)
	if m.Method != spec.NotifyAcknowledged || !named {
		return
	}
	p.mu.Lock()
	i := p.partingLocked(id)
	var scope string
	if i >= 0 {
		scope = p.partings[i].c.scope
	}
	p.mu.Unlock()
	if i >= 0 {
		p.link.heeded(scope)
	}
}
