package group

import (
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The kinds of what is sealed. One is not taken for another.
const (
	sealedCursor = 'c' // of a list; its member is empty
	sealedState  = 's' // a requestState
	sealedTask   = 't' // the id of a task
)

// A sealing takes requests of a group's clients to a member, and its results back: what members hand
// out, to get it back, has the member in it, and is sealed for the group. It keeps nothing.
type sealing struct {
	group        string
	sealer       *requeststate.Sealer
	unattributed bool // questions don't say who asks
}

// seal returns what a member has handed out as clients of the group get it. It is the same text
// each time, at each replica, and is no longer than the name of the member, inner, and 45 bytes.
func (s *sealing) seal(kind byte, member, inner string) string {
	return s.sealer.Bind(member+memberMark+inner, s.binding(kind))
}

// open returns what seal was given. The error is [requeststate.ErrInvalid] for any other text,
// also one of another kind, another group, or a single server.
func (s *sealing) open(kind byte, text string) (member, inner string, err error) {
	text, err = s.sealer.Unbind(text, s.binding(kind))
	if err != nil {
		return "", "", err
	}
	member, inner, ok := strings.Cut(text, memberMark)
	if !ok {
		return "", "", requeststate.ErrInvalid
	}
	return member, inner, nil
}

// memberMark ends the name of a member, none of which has it.
const memberMark = ":"

// binding says for what something is sealed. That of a single server begins with a quote.
func (s *sealing) binding(kind byte) string {
	return "group " + string(kind) + string(wire.Quote(s.group))
}
