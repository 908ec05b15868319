package front

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A batch is an array of messages, which one revision has.
//
// Spec: 2025-03-26, basic, Batching.
type batch struct {
	requests []*wire.Message
	others   []*wire.Message // notifications and responses
	refusals [][]byte        // answers to what can't be read
}

// readBatch takes a batch apart, or says why the session has none.
func (d *downstream) readBatch(body []byte) (*batch, *wire.Error) {
	if d.revision != spec.Rev20250326 {
		return nil, wire.Errorf(spec.CodeInvalidRequest, "revision %s has no batches; send each message by itself", d.revision)
	}
	if err := wire.Check(body, 0); err != nil {
		return nil, wire.Errorf(spec.CodeParse, "%v", err)
	}
	b := &batch{}
	for text := range wire.Elements(body) {
		m, err := wire.Parse(text, wire.Options{UniqueParams: true})
		if err == nil {
			err = d.f.opts.Check(&m)
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

func (d *downstream) servePostedBatch(w http.ResponseWriter, r *http.Request, body []byte) {
	b, err := d.readBatch(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, wire.ID{}, err)
		return
	}
	for _, m := range b.others {
		d.take(m)
	}
	if len(b.requests)+len(b.refusals) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	d.f.sessions.again(d)
	var first wire.ID
	if len(b.requests) > 0 {
		first = b.requests[0].ID
	}
	p := d.newPost(first, len(b.requests)+len(b.refusals), true)
	for _, refusal := range b.refusals {
		p.answer(response{msg: refusal})
	}
	for _, m := range b.requests {
		d.begin(m, p)
	}
	p.serve(w, r)
}
