package wake_test

import (
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

func ExampleBackoff() {
	b := wake.Backoff{Min: time.Second, Max: 5 * time.Second}
	for failures := range 4 {
		fmt.Println(b.After(failures))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
}
