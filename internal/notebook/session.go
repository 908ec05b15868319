package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// repliesDepth is how many messages the reader queues for the writer before it waits.
const repliesDepth = 64

// A session is the connection of one client. Its reader, which runs in Serve or
// ServeModern, answers one request after the other. Only its writer writes to conn.
type session struct {
	nb      *Notebook
	conn    transport.Conn
	pending *pending // changes to send

	// handle returns the result of a request or an error, or neither for a listen stream.
	handle func(*wire.Message) ([]byte, *wire.Error)

	// Owned by the reader.
	self     *subscriber            // of a legacy session
	listens  map[string]*subscriber // of a modern connection: open streams by request id
	revision spec.Revision          // empty before initialize
	level    spec.LogLevel          // empty: no log messages

	replies  chan []byte   // closed by the reader at its end
	written  chan struct{} // closed at the writer's end
	writeErr error         // the writer's error; read only after written is closed
}

func newSession(n *Notebook, conn transport.Conn) *session {
	return &session{
		nb:      n,
		conn:    conn,
		pending: newPending(),
		replies: make(chan []byte, repliesDepth),
		written: make(chan struct{}),
	}
}

func (s *session) serve(ctx context.Context) error {
	stop := closeWith(ctx, s.conn)
	defer stop()

	go s.write() // ends when replies is closed, or a write fails
	err := s.read()
	close(s.replies)
	if err != nil { // the client does not read the queued replies
		s.conn.Close()
	}
	<-s.written
	s.conn.Close()
	return s.outcome(ctx, err)
}

// closeWith closes conn when ctx ends. stop prevents that, or waits until conn is closed.
func closeWith(ctx context.Context, conn transport.Conn) (stop func()) {
	closed := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		defer close(closed)
		conn.Close()
	})
	return func() {
		if !undo() {
			<-closed
		}
	}
}

func (s *session) outcome(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil || errors.Is(s.writeErr, io.ErrClosedPipe):
		return nil // the client closed the connection; the reader or the writer noticed it first
	case s.writeErr != nil:
		err = s.writeErr
	}
	s.nb.log.Info("notebook session ended", "error", err)
	return fmt.Errorf("serving notebook session: %w", err)
}

// read answers requests until the connection ends, or a write fails.
func (s *session) read() error {
	for {
		data, err := s.conn.Read()
		if tooLong := (*transport.TooLongError)(nil); errors.As(err, &tooLong) {
			s.reply(wire.AppendError(nil, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "message too long")))
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !s.receive(data) {
			return transport.ErrClosed
		}
	}
}

// receive handles one message. It reports whether the session continues.
func (s *session) receive(data []byte) bool {
	m, err := wire.Parse(data, wire.Options{})
	if err != nil {
		code := spec.CodeInvalidRequest
		if errors.As(err, new(*wire.SyntaxError)) {
			code = spec.CodeParse
		}
		return s.reply(wire.AppendError(nil, m.ID, wire.Errorf(int64(code), "%v", err)))
	}
	switch m.Kind() {
	case wire.Request:
		return s.answer(&m)
	case wire.Notification:
		s.notification(&m)
	}
	// Responses are ignored, since the notebook sends no requests. So is
	// notifications/cancelled for other requests than listen, since they are answered
	// before the next message is read.
	return true
}

// notification handles a notification.
func (s *session) notification(m *wire.Message) {
	switch {
	case m.Method == spec.NotifyCancelled:
		s.cancel(wire.Get(m.Params, "requestId"))
	case m.Method == spec.NotifyInitialized && s.revision != "":
		s.pending.start()
	}
}

// answer replies to one request.
func (s *session) answer(m *wire.Message) bool {
	result, failure := s.handle(m)
	switch {
	case failure != nil:
		return s.reply(wire.AppendError(nil, m.ID, failure))
	case result == nil:
		return true // a listen stream
	}
	return s.reply(wire.AppendResult(nil, m.ID, result, nil))
}

// notify sends a notification about the request that is being answered, before its
// response. It must be possible to encode params.
func (s *session) notify(method string, params any) {
	if body, err := json.Marshal(params); err == nil {
		s.reply(wire.AppendNotification(nil, method, body, nil))
	}
}

// reply queues a message for the writer. It reports false if the writer has ended.
func (s *session) reply(msg []byte) bool {
	select {
	case s.replies <- msg:
		return true
	case <-s.written:
		return false
	}
}

// write writes replies and changes until the reader ends, and then the remaining
// replies. If a write fails it closes the conn, which ends the reader.
func (s *session) write() {
	defer close(s.written)
	for {
		select {
		case msg, ok := <-s.replies:
			if !ok {
				return
			}
			s.writeErr = s.conn.Write(msg)
		case <-s.pending.ready:
			s.writeErr = s.writeChanges()
		}
		if s.writeErr != nil {
			s.conn.Close()
			return
		}
	}
}

func (s *session) writeChanges() error {
	for c, ok := s.pending.next(); ok; c, ok = s.pending.next() {
		if err := s.conn.Write(c.message()); err != nil {
			return err
		}
	}
	return nil
}
