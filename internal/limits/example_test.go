package limits_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/limits"
)

func ExampleLimit_Raise() {
	fmt.Println("the request is longer than 4 MiB;", limits.Body.Raise())
	// Output: the request is longer than 4 MiB; raise limits.body
}
