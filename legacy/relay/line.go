package relay

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxWaiting is how many notifications of a client may wait for a server that does not read its
// connection.
const maxWaiting = 64

// A line is what waits for a server that does not read its connection, because it works on a
// call. The connection has the order.
type line struct {
	places chan struct{}   // holds a token for each notification that waits; capacity maxWaiting
	live   context.Context // of what waits; ends with the client's session
	end    context.CancelFunc
	full   transport.WarnLimiter
}

func newLine() *line {
	l := &line{places: make(chan struct{}, maxWaiting)}
	l.live, l.end = context.WithCancel(context.Background())
	return l
}

// sendInLine sends a message on a connection. If the server has not read it after takeTimeout, it
// returns nil: the message waits in the background, behind those before it, for as long as the
// client's session lasts. Who sent it would gain nothing by waiting, too.
//
// Only notifications need places: each response and each cancellation is of one request, and the
// numbers of those are limited. They would also be missed the most.
func (s *Session) sendInLine(m *wire.Message) error {
	late := time.NewTimer(takeTimeout)
	defer late.Stop()
	if m.Method == spec.NotifyCancelled {
		return s.sendAside(m, late.C, func() {})
	}
	memory, err := mcp.Reserve(s.memory, s.share, len(m.Text)) // what the sender has reserved ends before
	if err != nil {
		return err
	}
	leave := memory.Release
	if m.Kind() != wire.Response || m.ID.IsZero() {
		if err := s.takePlace(late.C); err != nil {
			memory.Release()
			return err
		}
		leave = func() { memory.Release(); <-s.line.places }
	}
	return s.sendAside(m, late.C, leave)
}

// sendAside sends a message in the background, and waits for that until late. It calls leave when
// the message waits no longer.
func (s *Session) sendAside(m *wire.Message, late <-chan time.Time, leave func()) error {
	sent := make(chan error, 1)
	started := s.link.Start(func() { // ends with the message, with s.line.live, or with the connection
		defer leave()
		sent <- s.forward(s.line.live, m)
	})
	if !started {
		leave()
		return mcp.SessionEnded(transport.Reason{Err: s.link.Err()})
	}
	select {
	case err := <-sent:
		return err
	case <-late:
		return nil
	}
}

// takePlace takes a place in the line. If none is free until late, the error is for the client.
func (s *Session) takePlace(late <-chan time.Time) error {
	select {
	case s.line.places <- struct{}{}:
		return nil
	case <-s.line.live.Done():
		return mcp.SessionEnded(transport.Reason{Err: errClientEnded})
	case <-late:
	}
	s.opts.Metrics.Limit(s.opts.Name, "unread_notifications")
	s.line.full.Warn(s.opts.Logger, "message of client refused: the server has left too many unread", "limit", maxWaiting)
	return mcp.RefuseForNow("server %q is busy: it has not read the last %d notifications of this session, the limit; send this again later, or cancel what the server works on", s.opts.Name, maxWaiting)
}

// awaitPlace waits until a request would not follow notifications that had to be refused. If that
// takes too long, the error is for the client.
func (s *Session) awaitPlace() error {
	if !s.link.Ordered() || len(s.line.places) < maxWaiting {
		return nil
	}
	late := time.NewTimer(takeTimeout)
	defer late.Stop()
	err := s.takePlace(late.C)
	if err == nil {
		<-s.line.places
	}
	return err
}
