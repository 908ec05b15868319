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

// seal returns what a member has handed out as clients of the group get it. It is the same text
// each time, at each replica, and is no longer than the name of the member, inner, and 45 bytes.
func (b *Back) seal(kind byte, member, inner string) string {
	return b.opts.Sealer.Bind(member+memberMark+inner, b.binding(kind))
}

// open returns what seal was given. The error is [requeststate.ErrInvalid] for any other text,
// also one of another kind, another group, or a single server.
func (b *Back) open(kind byte, text string) (member, inner string, err error) {
	text, err = b.opts.Sealer.Unbind(text, b.binding(kind))
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
func (b *Back) binding(kind byte) string {
	return "group " + string(kind) + string(wire.Quote(b.opts.Name))
}
