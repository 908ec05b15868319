package projection_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

func ExampleAppendResult() {
	tools := projection.NewTools()
	show := func(method, params, body string) {
		out, _, err := projection.AppendResult(nil, spec.Rev20250618, method, []byte(params), []byte(body), tools)
		fmt.Println(string(out), err)
	}
	show("tools/list", `{}`, `{"resultType":"complete","tools":[{"name":"words","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}],"ttlMs":0,"cacheScope":"public"}`)
	show("tools/call", `{"name":"words"}`, `{"resultType":"complete","structuredContent":["a"]}`)
	show("tools/call", `{"name":"words"}`, `{"resultType":"task","taskId":"1"}`)
	// Output:
	// {"tools":[{"name":"words","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}}]} <nil>
	// {"structuredContent":{"result":["a"]},"content":[{"type":"text","text":"[\"a\"]"}]} <nil>
	//  its resultType is "task", want "complete"
}

func ExampleInputRequest() {
	q := mcp.InputRequest{Method: "elicitation/create", Params: []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{"c":{"type":"string","oneOf":[{"const":"r","title":"Red"}]}}}}`)}
	asked, err := projection.InputRequest(spec.Rev20250618, []byte(`{"elicitation":{}}`), q)
	fmt.Println(string(asked.Params), err)
	_, err = projection.InputRequest(spec.Rev20241105, nil, q)
	fmt.Println(err)
	// Output:
	// {"message":"?","requestedSchema":{"type":"object","properties":{"c":{"type":"string","enum":["r"],"enumNames":["Red"]}}}} <nil>
	// clients can be asked for input since revision 2025-06-18
}
