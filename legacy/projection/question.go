package projection

import (
	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Question returns q, a modern server's question, as a client of rev is asked.
// The error says why it can't be asked.
func Question(rev spec.Revision, q exchange.Question) (exchange.Question, error) {
	return q, nil
}

// Answer returns the answer of a client of rev to q, the modern server's
// question, in the modern shape.
func Answer(rev spec.Revision, q exchange.Question, a exchange.Answer) exchange.Answer {
	return a
}
