package transport_test

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

func ExampleNewPipe() {
	a, b := transport.NewPipe()
	defer b.Close()
	go func() {
		defer a.Close()
		_ = a.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}()
	for {
		msg, err := b.Read()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", msg)
	}
	// Output:
	// {"jsonrpc":"2.0","method":"notifications/initialized"}
	// EOF
}
