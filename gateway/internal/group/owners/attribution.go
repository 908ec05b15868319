package owners

import (
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// NameLogger returns the params of a log message of a member.
func NameLogger(server string, params []byte) []byte {
	logger, _ := wire.GetString(params, "logger")
	name := server
	if logger != "" {
		name += "/" + logger
	}
	return wire.AppendReplaced(nil, params, wire.Edit{Name: "logger", Value: wire.Quote(name)})
}

// NameQuestion returns the params of a question, whose text begins with the name of the member
// that asks; nil if it has no text. That of an elicitation is its message, and that of sampling
// what the first message says.
//
// Spec: 2026-07-28, client/elicitation, Security Considerations; client/sampling, User
// Interaction Model.
func NameQuestion(server, method string, params []byte) []byte {
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
					said = wire.ReplacePart(content, block, text)
					break
				}
			}
		}
		if said == nil {
			return nil
		}
		return wire.ReplacePart(messages, message, wire.AppendReplaced(nil, message, wire.Edit{Name: "content", Value: said}))
	}
	return nil
}

// NameQuestions returns inputRequests whose texts begin with the name of the member that asks,
// and whether there are any.
func NameQuestions(server string, questions []byte) (said []byte, changed bool) {
	said = []byte{'{'}
	for k, q := range wire.Members(questions) {
		method, _ := wire.GetString(q, "method")
		if params := NameQuestion(server, method, wire.Get(q, "params")); params != nil {
			q, changed = wire.AppendReplaced(nil, q, wire.Edit{Name: "params", Value: params}), true
		}
		if len(said) > 1 {
			said = append(said, ',')
		}
		said = append(append(append(said, k...), ':'), q...)
	}
	return append(said, '}'), changed
}
