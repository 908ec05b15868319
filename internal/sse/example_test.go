package sse_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/sse"
)

func ExampleReader() {
	stream := ": hello\n\nid: 7\nevent: greeting\ndata: one\ndata: two\n\n"
	r := sse.NewReader(strings.NewReader(stream), sse.ReaderOptions{})
	for {
		ev, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %s %q\n", ev.ID, ev.Type, ev.Data)
	}
	// Output:
	// 7 greeting "one\ntwo"
	// EOF
}

func ExampleWriter() {
	w := sse.NewWriter(os.Stdout)
	w.Event("message", "", []byte(`{"jsonrpc":"2.0"}`))
	// Output:
	// event: message
	// data: {"jsonrpc":"2.0"}
}
