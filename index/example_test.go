package index_test

import (
	"fmt"
	"slices"

	"github.com/mcpbridge/mcpbridge/index"
)

func ExampleIndex() {
	x := index.New[string, string](index.Options{})
	fmt.Println("first:", x.Subscribe("note://todo", "ada"))
	fmt.Println("first:", x.Subscribe("note://todo", "bob"))

	subs := x.AppendSubscribers(nil, "note://todo")
	slices.Sort(subs)
	fmt.Println(subs)

	fmt.Println("last:", x.Unsubscribe("note://todo", "ada"))
	fmt.Println("last:", x.Unsubscribe("note://todo", "bob"))
	// Output:
	// first: true
	// first: false
	// [ada bob]
	// last: false
	// last: true
}

func ExampleIndex_Prune() {
	x := index.New[string, string](index.Options{})
	x.Subscribe("note://todo", "ada")
	x.Subscribe("note://todo", "bob")
	x.Subscribe("note://journal", "ada")

	released := x.Prune("ada") // her stream has ended
	slices.SortFunc(released, func(a, b index.Released[string]) int { return len(a.Key) - len(b.Key) })
	for _, r := range released {
		fmt.Println(r.Key, r.Last)
	}
	// Output:
	// note://todo false
	// note://journal true
}
