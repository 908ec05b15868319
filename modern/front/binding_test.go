package front

import (
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestM2L18BindingTellsRequestsApart(t *testing.T) {
	base := mcp.Request{Method: "tools/call", Principal: "ada", Params: []byte(`{"name":"a","arguments":{"x":1,"y":2}}`)}
	same := base
	same.Params = []byte(`{"requestState":"s","arguments":{"y":2, "x":1},"_meta":{"k":1},"inputResponses":{},"name":"a"}`)
	if binding("s", &base) != binding("s", &same) {
		t.Error("the retry of a request is bound otherwise than the request")
	}
	for name, change := range map[string]func(*mcp.Request){
		"principal": func(r *mcp.Request) { r.Principal = "bob" },
		"method":    func(r *mcp.Request) { r.Method = "prompts/get" },
		"name":      func(r *mcp.Request) { r.Params = []byte(`{"name":"b","arguments":{"x":1,"y":2}}`) },
		"argument":  func(r *mcp.Request) { r.Params = []byte(`{"name":"a","arguments":{"x":1,"y":3}}`) },
	} {
		other := base
		change(&other)
		if binding("s", &base) == binding("s", &other) {
			t.Errorf("another %s is bound the same", name)
		}
	}
	if binding("s", &base) == binding("t", &base) {
		t.Error("another server is bound the same")
	}
}
