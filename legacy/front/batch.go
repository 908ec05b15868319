package front

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A batch is an array of messages, which only revision 2025-03-26 has.
//
// Spec: 2025-03-26, basic, Batching.
type batch struct {
	requests []*wire.Message
	others   []*wire.Message // notifications and responses
	refusals [][]byte        // errors for messages that are invalid
}

// readBatch parses a batch, or returns an error if the session's revision has no batches.
func (s *session) readBatch(body []byte) (*batch, *wire.Error) {
	if s.revision != spec.Rev20250326 {
		return nil, wire.Errorf(spec.CodeInvalidRequest, "revision %s has no batches; send each message by itself", s.revision)
	}
	if err := wire.Check(body, 0); err != nil {
		return nil, wire.Errorf(spec.CodeParse, "%v", err)
	}
	b := &batch{}
	for text := range wire.Elements(body) {
		m, err := wire.Parse(text, wire.Options{UniqueParams: true, NullParams: s.front.opts.Quirks.Tolerates(quirks.NullParams)})
		if err == nil {
			err = s.front.opts.Check(&m)
		}
		if err == nil {
			s.front.tolerate(&m, s.info)
		}
		switch {
		case err != nil:
			b.refusals = append(b.refusals, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInvalidRequest, "%v", err)))
		case m.Method == spec.MethodInitialize:
			b.refusals = append(b.refusals, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInvalidRequest, "initialize can't be part of a batch")))
		case m.Kind() == wire.Request:
			b.requests = append(b.requests, &m)
		default:
			b.others = append(b.others, &m)
		}
	}
	if len(b.requests)+len(b.others)+len(b.refusals) == 0 {
		return nil, wire.Errorf(spec.CodeInvalidRequest, "the batch is empty")
	}
	return b, nil
}

func (s *session) servePostBatch(w http.ResponseWriter, r *http.Request, body []byte, from origin, f form) {
	b, err := s.readBatch(body)
	if err != nil {
		downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, err)
		return
	}
	for _, m := range b.others {
		s.receive(m)
	}
	if len(b.requests)+len(b.refusals) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.front.sessions.retain(s)
	var first wire.ID
	if len(b.requests) > 0 {
		first = b.requests[0].ID
	}
	p := s.newHTTPReply(first, len(b.requests)+len(b.refusals), true, f)
	for _, refusal := range b.refusals {
		p.reply(response{msg: refusal})
	}
	for _, m := range b.requests {
		s.request(m, from, p)
	}
	p.serve(w, r)
}
