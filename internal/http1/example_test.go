package http1_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mcpbridge/mcpbridge/internal/http1"
)

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello")
	}))
	defer server.Close()
	tr := http1.NewTransport(&http.Transport{})
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s: %s\n", resp.Status, text)
	// Output: 200 OK: hello
}
