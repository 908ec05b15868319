package router

import (
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

// unread returns the message of a request that is answered before its body was read, if the body
// is short: an error without the id tells its client little. Without a message there is no id.
//
// Spec: 2025-11-25, basic, Error Responses: they have the id unless that could not be read.
func (s *server) unread(w http.ResponseWriter, r *http.Request) wire.Message {
	if r.ContentLength <= 0 || r.ContentLength > maxUnread {
		return wire.Message{}
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return wire.Message{}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // as bodyReader.read does
	m, err := s.parse(body)
	if err != nil {
		return wire.Message{ID: m.ID}
	}
	return m
}

// mayRepeat reports whether a request may be sent again that may have been served: one that
// reads, or opens or ends what can be opened or ended twice, and does not continue a call.
func mayRepeat(r *http.Request, m *wire.Message) bool {
	if r.Method != http.MethodPost {
		return true
	}
	if _, continues := wire.GetString(m.Params, "requestState"); continues {
		return false
	}
	return m.Kind() == wire.Request && (spec.Repeatable(m.Method) || m.Method == spec.MethodInitialize || m.Method == spec.MethodPing)
}

// notForwarded answers a request that another replica has not answered.
func (s forwarder) notForwarded(w http.ResponseWriter, r *http.Request, f peer.Forward, err error) {
	var m wire.Message
	if f.Body != nil {
		m, _ = s.parse(f.Body)
	} else {
		m = s.unread(w, r)
	}
	w.Header().Set("Connection", "close") // the rest of the body is not read
	silent, refusing := (*peer.SilentError)(nil), (*peer.RefusingError)(nil)
	known := errors.As(err, &silent)
	if !known {
		s.g.sharing.unanswered.Warn(s.g.opts.Logger, "forwarded request without a response", "upstream", s.name, "replica", f.To.Instance, "err", err)
	}
	if known || errors.As(err, &refusing) || mayRepeat(r, &m) {
		w.Header().Set("Retry-After", "1")
		downstream.WriteError(w, http.StatusServiceUnavailable, m.ID, wire.Errorf(spec.CodeInternal,
			"this is held by a replica that does not answer; try again"))
		return
	}
	downstream.WriteError(w, http.StatusBadGateway, m.ID, wire.Errorf(spec.CodeInternal,
		"the replica that holds this has not answered; the request may have taken effect: check before sending it again"))
}
