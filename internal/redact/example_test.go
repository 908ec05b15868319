package redact_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

func ExampleRedactor() {
	r := redact.New("pass/word")
	fmt.Println(r.String("GET /?key=pass%2Fword: refused"))
	fmt.Println(r.Words("Authorization: Bearer abcdefghijklmnop"))
	// Output:
	// GET /?key=[hidden]: refused
	// Authorization: [hidden] [hidden]
}
