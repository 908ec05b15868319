package notebook_test

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

func ExampleNotebook_Serve() {
	client, server := transport.NewPipe()
	ended := make(chan error)
	go func() { ended <- notebook.New(notebook.Options{}).Serve(context.Background(), server) }()

	client.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	answer, _ := client.Read()
	fmt.Printf("%s\n", answer)

	client.Close()
	fmt.Println(<-ended)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// <nil>
}
