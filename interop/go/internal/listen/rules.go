package listen

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A message is any that a stream may carry.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		URI           string
		Notifications *Filter
		Meta          stamp `json:"_meta"`
	}
	Result *struct {
		ResultType string
		Meta       stamp `json:"_meta"`
	}
	Error json.RawMessage
}

type stamp struct {
	ID json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
}

// take holds a message against the rules, and keeps what it tells of.
func (s *Stream) take(at int64, text []byte) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		s.problem("message %s: %v", text, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != Open {
		s.problemLocked("a message after the last: %s", text)
	}
	switch {
	case m.Error != nil:
		s.ending = Refused
		s.problemLocked("refused: %s", text)
	case m.Result != nil:
		s.ending = Graceful
		if m.Result.ResultType != "complete" || string(m.ID) != s.ID {
			s.problemLocked("result %s", text)
		}
		s.checkStampLocked(m.Result.Meta, text)
	default:
		s.checkStampLocked(m.Params.Meta, text)
		s.noticeLocked(at, &m, text)
	}
}

// checkStampLocked wants the id of the listen request, in value and type.
func (s *Stream) checkStampLocked(got stamp, text []byte) {
	if string(got.ID) != s.ID {
		s.problemLocked("the stamp is %s, want %s: %s", got.ID, s.ID, text)
	}
}

func (s *Stream) noticeLocked(at int64, m *message, text []byte) {
	if s.ackAt == 0 {
		if m.Method != "notifications/subscriptions/acknowledged" || m.Params.Notifications == nil {
			s.problemLocked("before the acknowledgment: %s", text)
			return
		}
		s.ack, s.ackAt = *m.Params.Notifications, at
		close(s.Acked)
		return
	}
	topic := ""
	switch m.Method {
	case "notifications/resources/updated":
		topic = m.Params.URI
	case "notifications/tools/list_changed":
		topic = Tools
	}
	if !slices.Contains(s.ack.Topics(), topic) {
		s.problemLocked("not acknowledged: %s", text)
	}
	s.frames = append(s.frames, Frame{at, topic})
}

func (s *Stream) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problemLocked(format, args...)
}

func (s *Stream) problemLocked(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}
