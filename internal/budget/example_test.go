package budget_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/budget"
)

func ExampleAccount() {
	b := budget.New(1 << 20)
	one := b.Account("192.0.2.1")
	fmt.Println("512 KiB:", one.Take(512<<10))
	fmt.Println("1 MiB:", one.Take(1<<20))
	one.Give(512 << 10)
	// Output:
	// 512 KiB: true
	// 1 MiB: false
}
