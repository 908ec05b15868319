package wire_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func ExampleParse() {
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"add","arguments":{"a":1e2}}}`), wire.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Method, m.ID)
	fmt.Printf("%s\n", wire.Get(m.Params, "arguments"))
	// Output:
	// tools/call 1.0
	// {"a":1e2}
}

func ExampleAppendEdited() {
	text := []byte(`{"name":"add", "arguments":{"a":1e2}, "_meta":{}}`)
	fmt.Printf("%s\n", wire.AppendEdited(nil, text, wire.Edit{Name: "_meta"}, wire.Edit{Name: "name", Value: wire.Quote("sum")}))
	// Output: {"name":"sum","arguments":{"a":1e2}}
}

func ExampleMembers() {
	for name, value := range wire.Members([]byte(`{"b":[1, 2],"a":null}`)) {
		fmt.Printf("%s = %s\n", name, value)
	}
	// Output:
	// b = [1, 2]
	// a = null
}
