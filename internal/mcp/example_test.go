package mcp_test

import (
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func ExampleFilter_Topics() {
	f := mcp.Filter{Tools: true, URIs: []string{"note://todo", "note://journal"}}
	topics := f.Topics("notebook")
	for _, t := range topics {
		fmt.Println(strings.TrimSpace(t.Kind.String() + " " + t.URI))
	}
	fmt.Println(f.Narrow(topics[:2]))
	// Output:
	// toolsListChanged
	// resourceUpdated note://todo
	// resourceUpdated note://journal
	// {true false false [note://todo] false}
}

func ExampleCutCompletion() {
	fmt.Printf("%s\n", mcp.CutCompletion([]byte(`{"values":["a","b"]}`)))
	// Output: {"values":["a","b"]}
}
