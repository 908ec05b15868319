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
const maxWaiting = 1024

// waitingSize is the memory of a message that waits, besides its text, in bytes: mostly a goroutine.
const waitingSize = 4 << 10

// A line is what waits for a server that does not read its connection, because it works on a
// call. The connection has the order.
type line struct {
	places chan struct{}   // holds a token for each notification that waits; capacity maxWaiting
	live   context.Context // of what waits; ends with the client's session
	end    func()
	full   transport.WarnLimiter
}

func newLine() *line {
	l := &line{places: make(chan struct{}, maxWaiting)}
	live, end := context.WithCancelCause(context.Background())
	l.live, l.end = live, func() { end(mcp.SessionEnded(transport.Reason{Err: errClientEnded})) }
	return l
}

// sendInLine sends a message on a connection. If the server has not read it after its patience, it
// returns nil: the message waits in the background, behind those before it, for as long as the
// client's session lasts. Who sent it would gain nothing by waiting, too.
//
// Only notifications need places: the server waits for responses, and a call that is cancelled is
// one that was made. All need memory; without it, a cancellation has no more than its id, and the
// server gets an error for a response.
func (s *Session) sendInLine(m *wire.Message) error {
	late := time.NewTimer(s.patience(m))
	defer late.Stop()
	memory, err := mcp.Reserve(s.memory, s.share, len(m.Text)+waitingSize) // what the sender has reserved ends before
	isResponse := m.Kind() == wire.Response && !m.ID.IsZero()
	leave := memory.Release
	switch {
	case err != nil && m.Method == spec.NotifyCancelled:
		m = bareCancellation(m)
	case err != nil && isResponse:
		if id, ok := s.inputs.take(m.ID); ok {
			s.link.SendLater(context.Background(), wire.AppendError(nil, id, mcp.WireError(err)))
		}
		return err
	case err != nil:
		return err
	case m.Method != spec.NotifyCancelled && !isResponse:
		if err := s.takePlace(s.line.live, late.C); err != nil {
			memory.Release()
			return err
		}
		leave = func() { memory.Release(); <-s.line.places }
	}
	return s.sendAside(m, late.C, leave)
}

// bareCancellation returns a cancellation without what is not needed.
func bareCancellation(m *wire.Message) *wire.Message {
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "requestId", Value: wire.Get(m.Params, "requestId")})
	return &wire.Message{Method: m.Method, Params: params, Text: wire.AppendNotification(nil, m.Method, params, nil)}
}

// sendAside sends a message in the background, and waits for that until late. It calls leave when
// the message waits no longer.
func (s *Session) sendAside(m *wire.Message, late <-chan time.Time, leave func()) error {
	sent := make(chan error, 1)
	started := s.link.Start(func() { // ends with the message, with s.line.live, or with the connection
		defer leave()
		err := s.forward(s.line.live, m)
		if err != nil && s.line.live.Err() != nil {
			s.link.Drop("client message") // nobody waits for the error
		}
		sent <- err
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

// takePlace takes a place in the line, unless ctx ends. If none is free until late, the error is for
// the client.
func (s *Session) takePlace(ctx context.Context, late <-chan time.Time) error {
	select {
	case s.line.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late:
	}
	s.opts.Metrics.Limit(s.opts.Name, "unread_notifications")
	s.line.full.Warn(s.opts.Logger, "message of client refused: the server has left too many unread", "limit", maxWaiting)
	return mcp.RefuseForNow("server %q is busy: it has not read the last %d notifications of this session, the limit; send this again later, or cancel what the server works on", s.opts.Name, maxWaiting)
}

// awaitPlace waits until a request would not follow notifications that had to be refused, unless
// ctx ends. If that takes too long, the error is for the client.
func (s *Session) awaitPlace(ctx context.Context) error {
	if !s.link.Ordered() || len(s.line.places) < maxWaiting {
		return nil
	}
	late := time.NewTimer(takeTimeout)
	defer late.Stop()
	err := s.takePlace(ctx, late.C)
	if err == nil {
		<-s.line.places
	}
	return err
}
