package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxUnread bounds what is read of a body for the id of an error, in bytes.
const maxUnread = 32 << 10

// forward forwards a request. It answers what can't be forwarded, except to a replica that is
// gone, that does not answer where another one may, or that has not answered what may be sent
// again elsewhere: that is returned as an error.
func (s *Server) forward(q *Request, f peer.Forward) error {
	f.Path, f.Sender, f.Whole = q.At.Path(s.o.Name), q.Sender, s.o.Whole
	f.Streams, f.WriteTimeout = s.o.Streams, s.g.writeTimeout()
	f.Ends = []context.Context{s.g.opts.Streams, s.o.Life.Context()}
	body := &forwardedBody{ReadCloser: q.R.Body, w: q.W, left: q.R.ContentLength}
	if f.Body == nil {
		q.R.Body = body
	}
	err := s.g.opts.Peers.Forward(q.W, q.R, f)
	unanswered := (*peer.UnansweredError)(nil)
	switch {
	case err == nil:
	case body.err != nil:
		s.o.RefuseBody(q.W, q.R, body.err)
	case errors.Is(err, downstream.ErrClientLeft):
	case err == peer.ErrCut:
		panic(http.ErrAbortHandler) // the client must not take it for the end
	case isGone(err), f.Placed && isSilent(err), f.Again && errors.As(err, &unanswered) && unanswered.Stopped():
		return err
	default:
		s.notAnswered(q, f, err)
	}
	return nil
}

// isGone reports whether an error of forward says that the other replica is gone.
func isGone(err error) bool {
	gone := (*peer.GoneError)(nil)
	return errors.As(err, &gone)
}

// isSilent reports whether an error of forward says that the other replica does not answer, and
// was sent nothing.
func isSilent(err error) bool {
	silent := (*peer.SilentError)(nil)
	return errors.As(err, &silent)
}

// notAnswered answers a request that another replica has not answered.
func (s *Server) notAnswered(q *Request, f peer.Forward, err error) {
	var m wire.Message
	if f.Body != nil {
		m, _ = s.o.Parse(f.Body)
	} else {
		m = s.unread(q)
	}
	q.W.Header().Set("Connection", "close") // the rest of the body is not read
	refusing := (*peer.RefusingError)(nil)
	known := isSilent(err)
	if !known {
		s.g.unanswered.Warn(s.g.opts.Logger, "forwarded request without a response", "upstream", s.o.Name, "replica", f.To.Instance, "err", err)
	}
	if known || errors.As(err, &refusing) || mayRepeat(q.R, &m) {
		downstream.WriteBusy(q.W, m.ID, wire.Errorf(spec.CodeInternal, "this is held by a replica that does not answer; try again"))
		return
	}
	downstream.WriteError(q.W, http.StatusBadGateway, m.ID, wire.Errorf(spec.CodeInternal,
		"the replica that holds this has not answered; the request may have taken effect: check before sending it again"))
}

// unread returns the message of a request that is answered before its body was read, if the body
// is short: an error without the id tells its client little. Without a message there is no id.
//
// Spec: 2025-11-25, basic, Error Responses: they have the id unless that could not be read.
func (s *Server) unread(q *Request) wire.Message {
	if q.R.ContentLength <= 0 || q.R.ContentLength > maxUnread {
		return wire.Message{}
	}
	body := make([]byte, q.R.ContentLength)
	if _, err := io.ReadFull(q.R.Body, body); err != nil {
		return wire.Message{}
	}
	_ = http.NewResponseController(q.W).SetReadDeadline(time.Time{}) // as who reads all of a body does
	m, err := s.o.Parse(body)
	if err != nil {
		return wire.Message{ID: m.ID}
	}
	return m
}

// A forwardedBody is a request's body that is read while it is forwarded. As who reads all of
// a body does, it clears the deadline then.
type forwardedBody struct {
	io.ReadCloser
	w    http.ResponseWriter
	left int64 // negative if the length is unknown
	err  error // of reading
}

func (b *forwardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF, err == nil && b.left == 0:
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{})
	case err != nil:
		b.err = err
	}
	return n, err
}
