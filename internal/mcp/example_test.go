package mcp_test

import (
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/limits"
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

func ExamplePlaces() {
	p := mcp.Places{All: limits.Parked, Max: 3, Each: limits.ParkedEach, MaxEach: 2}
	ada, bob := mcp.Share{Principal: "ada"}, mcp.Share{Principal: "bob"}
	for _, share := range []mcp.Share{ada, ada, ada, bob, bob} {
		if limit, most := p.Full(share); limit != nil {
			fmt.Printf("%s: %s is %d\n", share.Principal, limit.Key, most)
			continue
		}
		p.Take(share)
	}
	p.Give(ada)
	fmt.Println(p.Len(), "left")
	// Output:
	// ada: parked_each is 2
	// bob: parked is 3
	// 2 left
}
