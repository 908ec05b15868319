package front

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// TestM2L16QuestionsHaveParams proves that a question goes to the client with
// the params it came with, and with empty ones if it had none.
func TestM2L16QuestionsHaveParams(t *testing.T) {
	open := []*pendingInput{
		{key: "q1", request: mcp.InputRequest{Method: spec.MethodRootsList}},
		{key: "q2", request: mcp.InputRequest{Method: spec.MethodElicit, Params: []byte(`{"message":"m"}`)}},
	}
	got := string(appendInputRequired(nil, wire.NumberID(7), open, "state", nil))
	const want = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{` +
		`"q1":{"method":"roots/list","params":{}},"q2":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"state"}}`
	if got != want {
		t.Errorf("appendInputRequired = %s, want %s", got, want)
	}
}
