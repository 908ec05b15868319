package group

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An attributed Caller tells the client which member asks, and which one logs.
type attributed struct {
	mcp.Caller
	server string
	silent bool     // its name is not put into questions
	tasks  *sealing // of the ids of tasks, for a client that holds some; else nil
}

// Notify implements [mcp.Caller]: the logger of a log message is the member's.
func (a *attributed) Notify(ctx context.Context, n mcp.Notification) error {
	if n.Method == spec.NotifyMessage {
		n.Params = loggedBy(a.server, n.Params)
	}
	if a.tasks != nil {
		n.Params = a.tasks.tells(a.server, n.Params)
	}
	return a.Caller.Notify(ctx, n)
}

// RequestInput implements [mcp.Caller].
func (a *attributed) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	said := make([]mcp.InputRequest, len(qs))
	for i, q := range qs {
		q.Server = a.server
		if params := attribute(a.server, q.Method, q.Params); params != nil && !a.silent {
			q.Params = params
		}
		if a.tasks != nil {
			q.Params = a.tasks.tells(a.server, q.Params)
		}
		said[i] = q
	}
	return a.Caller.RequestInput(ctx, said)
}

// loggedBy returns the params of a log message of a member.
func loggedBy(server string, params []byte) []byte {
	logger, _ := wire.GetString(params, "logger")
	name := server
	if logger != "" {
		name += "/" + logger
	}
	return wire.AppendReplaced(nil, params, wire.Edit{Name: "logger", Value: wire.Quote(name)})
}

// attribute returns the params of a question, whose text begins with the name of the member
// that asks; nil if it has no text. That of an elicitation is its message, and that of sampling
// what the first message says.
//
// Spec: 2026-07-28, client/elicitation, Security Considerations; client/sampling, User
// Interaction Model.
func attribute(server, method string, params []byte) []byte {
	switch method {
	case spec.MethodElicit:
		return beginning(server, params, "message")
	case spec.MethodSample:
		messages := wire.Get(params, "messages")
		first := beginningOfFirst(server, messages)
		if first == nil {
			return nil
		}
		return wire.AppendReplaced(nil, params, wire.Edit{Name: "messages", Value: first})
	}
	return nil
}

// beginning returns an object in which a text begins with a name; nil if it has no such text.
func beginning(name string, object []byte, member string) []byte {
	text, ok := wire.GetString(object, member)
	if !ok {
		return nil
	}
	return wire.AppendReplaced(nil, object, wire.Edit{Name: member, Value: wire.Quote(name + ": " + text)})
}

// beginningOfFirst returns messages of which the first one's text begins with a name; nil if
// that has no text.
func beginningOfFirst(name string, messages []byte) []byte {
	for message := range wire.Elements(messages) {
		content := wire.Get(message, "content")
		said := beginning(name, content, "text")
		if wire.IsArray(content) {
			for block := range wire.Elements(content) {
				if text := beginning(name, block, "text"); text != nil {
					said = replaced(content, block, text)
					break
				}
			}
		}
		if said == nil {
			return nil
		}
		return replaced(messages, message, wire.AppendReplaced(nil, message, wire.Edit{Name: "content", Value: said}))
	}
	return nil
}

// replaced returns text with another text in the place of part, which aliases it.
func replaced(text, part, by []byte) []byte {
	at := cap(text) - cap(part)
	return append(append(append(make([]byte, 0, len(text)+len(by)-len(part)), text[:at]...), by...), text[at+len(part):]...)
}
