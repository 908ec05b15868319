package group

import (
	"bytes"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	memberName   = "name"
	memberURI    = "uri"
	memberState  = "requestState"
	memberTaskID = "taskId"
	memberFilter = "notifications"
)

// params are the members of a request's params that matter here. nil are those that it lacks.
type params struct {
	name        string // of subject
	subject     []byte // what the request is about: a string
	cut         []byte // the part of subject that a member does not get; nil for none
	state, meta []byte // meta is nil if it is bare, too
}

// readParams reads the params of a request, in which a member called subject says what it is
// about.
func readParams(req *mcp.Request, subject string) (p params, err error) {
	p.name = subject
	if err = p.find(req); err != nil {
		return p, err
	}
	if len(p.subject) == 0 || p.subject[0] != '"' {
		return p, mcp.Refuse(spec.CodeInvalidParams, "params.%s is missing or not a string", subject)
	}
	return p, nil
}

// find finds what p is of, whatever the subject is.
func (p *params) find(req *mcp.Request) error {
	subject := p.name
	if at := &req.Plain; at.Knows(req.Params) {
		for i := range at.Len() {
			k, v := at.Member(req.Params, i)
			switch name := k[1 : len(k)-1]; {
			case string(name) == subject:
				p.subject = v
			case string(name) == memberState:
				p.state = v
			case string(name) == "_meta":
				if !req.BareMeta {
					p.meta = v
				}
			case len(name) == len(subject) && bytes.EqualFold(name, []byte(subject)):
				return misspelled(k, subject)
			case len(name) == len(memberState) && bytes.EqualFold(name, []byte(memberState)):
				return misspelled(k, memberState)
			}
		}
		return nil
	}
	for k, v := range wire.Members(req.Params) {
		switch {
		case k.Is(subject):
			p.subject = v
		case k.Is(memberState):
			p.state = v
		case k.Is("_meta"):
			p.meta = v
		case isOtherCase(k, subject):
			return misspelled(k, subject)
		case isOtherCase(k, memberState):
			return misspelled(k, memberState)
		}
	}
	return nil
}

// isOtherCase reports whether a key differs from a name in case only: some servers would read it
// instead of the one that was checked (CWE-178).
func isOtherCase(k wire.Key, name string) bool {
	written := k[1 : len(k)-1]
	switch {
	case len(written) < len(name): // escapes, and letters of other scripts, only make it longer
		return false
	case len(written) == len(name):
		return bytes.EqualFold(written, []byte(name))
	case bytes.IndexByte(written, '\\') < 0 && isASCII(written):
		return false
	}
	return strings.EqualFold(k.String(), name)
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= 0x80 {
			return false
		}
	}
	return true
}

func misspelled(k wire.Key, name string) error {
	return mcp.Refuse(spec.CodeInvalidParams, "the member %s is not the one that is called %q: names are case-sensitive", []byte(k), name)
}

// only returns the member of an object with a name; nil if there is none.
func only(object []byte, name string) (value []byte, err error) {
	for k, v := range wire.Members(object) {
		switch {
		case k.Is(name):
			value = v
		case isOtherCase(k, name):
			return nil, misspelled(k, name)
		}
	}
	return value, nil
}

// forMember returns a copy of a request as a member gets it: with another subject, unless that is nil or cut, and
// with what the member has handed out as it was. All other bytes stay.
func (s *sealing) forMember(req *mcp.Request, p *params, m *memberAt, subject []byte) (*passing, error) {
	var edits []wire.Edit
	if p.state != nil && spec.MayAsk(req.Method) {
		inner, err := s.stateOf(p.state, m.Name)
		if err != nil {
			return nil, err
		}
		edits = append(edits, wire.Edit{Name: memberState, Value: wire.Quote(inner)})
	}
	if !req.BareMeta {
		if meta := s.ownTasks(p.meta, m.Name); meta != nil {
			edits = append(edits, wire.Edit{Name: "_meta", Value: meta})
		}
	}
	switch {
	case p.cut != nil && len(edits) == 0: // as in most calls
		return withParams(req, wire.ReplacePart(req.Params, p.cut, nil)), nil
	case p.cut != nil:
		edits = append(edits, wire.Edit{Name: p.name, Value: wire.ReplacePart(p.subject, p.cut, nil)})
	case subject == nil && len(edits) == 0:
		return copied(req), nil
	case len(edits) == 0:
		return withParams(req, wire.ReplacePart(req.Params, p.subject, subject)), nil
	case subject != nil:
		edits = append(edits, wire.Edit{Name: p.name, Value: subject})
	}
	return withParams(req, wire.AppendReplaced(make([]byte, 0, len(req.Params)+256), req.Params, edits...)), nil
}

// A passing is a request as a member gets it, with its caller.
type passing struct {
	mcp.Request
	caller attributed
}

// copied returns a copy of a request.
func copied(req *mcp.Request) *passing { return &passing{Request: *req} }

// withParams returns a copy of a request with other params.
func withParams(req *mcp.Request, params []byte) *passing {
	sent := copied(req)
	sent.Params, sent.Plain = params, wire.Plain{}
	return sent
}

// stateOf returns the requestState that a member has handed out, from the JSON of what the
// client sends back. The error is that of any other one.
func (s *sealing) stateOf(text []byte, member string) (string, error) {
	of, inner, err := s.open(sealedState, wire.Unquote(text))
	if err != nil || text[0] != '"' || of != member {
		return "", mcp.Refuse(spec.CodeInvalidParams, "%v; send the request again, without requestState and inputResponses", requeststate.ErrInvalid)
	}
	return inner, nil
}

// ownTasks returns the _meta of a request with the ids of a member's tasks as they were, and
// without those of others; nil if it names no tasks.
func (s *sealing) ownTasks(meta []byte, member string) []byte {
	ids := wire.GetSeldom(meta, spec.MetaRelatedTasks)
	if ids == nil {
		return s.ownTask(meta, member)
	}
	own := []byte{'['}
	for id := range wire.Elements(ids) {
		if of, inner, err := s.open(sealedTask, wire.Unquote(id)); err == nil && of == member {
			own = append(wire.AppendString(own, inner), ',')
		}
	}
	return wire.AppendReplaced(nil, meta, wire.Edit{Name: spec.MetaRelatedTasks, Value: wire.CloseArray(own)})
}

// ownTask is ownTasks for the one task of 2025-11-25 to which a request is said to belong.
func (s *sealing) ownTask(meta []byte, member string) []byte {
	task := wire.GetSeldom(meta, spec.MetaRelatedTask)
	if task == nil {
		return nil
	}
	id, _ := wire.GetString(task, memberTaskID)
	if of, inner, err := s.open(sealedTask, id); err != nil || of != member {
		task = nil
	} else {
		task = wire.AppendReplaced(nil, task, wire.Edit{Name: memberTaskID, Value: wire.Quote(inner)})
	}
	return wire.AppendEdited(nil, meta, wire.Edit{Name: spec.MetaRelatedTask, Value: task})
}
