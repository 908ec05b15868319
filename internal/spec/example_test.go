package spec_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func ExampleRevision_Era() {
	for _, r := range spec.AllRevisions() {
		fmt.Println(r, r.Era())
	}
	// Output:
	// 2026-07-28 modern
	// 2025-11-25 legacy
	// 2025-06-18 legacy
	// 2025-03-26 legacy
	// 2024-11-05 legacy
}
