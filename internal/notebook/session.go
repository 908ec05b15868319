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

// repliesDepth is how many messages wait for a session's writer before its
// reader does.
const repliesDepth = 64

// session is one client's. Its reader, which is Serve, answers one request
// after the other; its writer alone writes to conn.
type session struct {
	nb   *Notebook
	conn transport.Conn
	ear  ear   // of a legacy client
	desk *desk // of a modern client; else nil

	// Owned by the reader.
	revision spec.Revision // empty before initialize
	level    spec.LogLevel // empty before logging/setLevel: no messages

	replies  chan []byte   // closed by the reader when it ends
	written  chan struct{} // closed when the writer has ended
	writeErr error         // why, if not for want of replies; read only after written is closed
}

// Serve serves one session on conn until the client ends it, ctx does, or the
// client does not take what it is sent within the conn's write time-out. It
// closes conn, and returns nil only if the client ended the session.
func (n *Notebook) Serve(ctx context.Context, conn transport.Conn) error {
	s := newSession(n, conn)
	n.add(&s.ear)
	defer n.remove(&s.ear)
	return s.serve(ctx)
}

func newSession(n *Notebook, conn transport.Conn) *session {
	return &session{
		nb:      n,
		conn:    conn,
		ear:     ear{cues: newCues(make(chan struct{}, 1)), subs: make(map[string]struct{})},
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
	if err != nil { // nobody is left to read what is queued
		s.conn.Close()
	}
	<-s.written
	s.conn.Close()
	return s.outcome(ctx, err)
}

// closeWith closes conn when ctx ends. stop undoes that, or waits for it.
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
		return nil // whichever of the two noticed first that the client left
	case s.writeErr != nil:
		err = s.writeErr
	}
	s.nb.log.Info("notebook session ended", "error", err)
	return fmt.Errorf("serving notebook session: %w", err)
}

// read answers requests until there are no more, or no answer can be written.
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

// receive handles one message. It reports whether the session goes on.
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
		s.heed(&m)
	}
	// Responses answer nothing: the notebook asks no questions. Neither does it
	// need notifications/cancelled for calls, being done when that could arrive.
	return true
}

// heed takes a notification.
func (s *session) heed(m *wire.Message) {
	switch {
	case s.desk != nil && m.Method == spec.NotifyCancelled:
		s.hangUp(wire.Get(m.Params, "requestId"))
	case m.Method == spec.NotifyInitialized && s.revision != "":
		s.ear.cues.release()
	}
}

// answer replies to one request.
func (s *session) answer(m *wire.Message) bool {
	if s.desk != nil {
		return s.answerModern(m)
	}
	result, failure := s.handle(m)
	if failure == nil {
		body, err := json.Marshal(result)
		if err == nil {
			return s.reply(wire.AppendResult(nil, m.ID, body, nil))
		}
		failure = wire.Errorf(spec.CodeInternal, "encoding the result: %v", err)
	}
	return s.reply(wire.AppendError(nil, m.ID, failure))
}

// notify sends a notification that belongs to the request being answered, and
// so goes before its reply. params must be encodable.
func (s *session) notify(method string, params any) {
	if body, err := json.Marshal(params); err == nil {
		s.reply(wire.AppendNotification(nil, method, body, nil))
	}
}

// reply queues a message for the writer. It reports whether there still is one.
func (s *session) reply(msg []byte) bool {
	select {
	case s.replies <- msg:
		return true
	case <-s.written:
		return false
	}
}

// write writes replies and cues until the reader ends, then what is left of the
// replies. When a write fails it closes the conn, which ends the reader.
func (s *session) write() {
	defer close(s.written)
	for {
		select {
		case msg, ok := <-s.replies:
			if !ok {
				return
			}
			s.writeErr = s.conn.Write(msg)
		case <-s.ear.cues.ready:
			s.writeErr = s.writeCues()
		}
		if s.writeErr != nil {
			s.conn.Close()
			return
		}
	}
}

func (s *session) writeCues() error {
	if s.desk != nil {
		return s.writeEvents()
	}
	for q, ok := s.ear.cues.next(); ok; q, ok = s.ear.cues.next() {
		var params []byte
		if q.uri != "" {
			params = append(wire.AppendString([]byte(`{"uri":`), q.uri), '}')
		}
		if err := s.conn.Write(wire.AppendNotification(nil, q.method, params, nil)); err != nil {
			return err
		}
	}
	return nil
}
