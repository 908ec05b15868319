// Command embedded has a gateway inside of it: it serves an MCP server of this process,
// which knows revision 2025-11-25 alone, to clients of every revision, and ends in order.
//
//	go run ./examples/embedded
//	go run ./cmd/mcpbridge call http://127.0.0.1:2526/mcp/notes read_note name=today
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mcpbridge/mcpbridge/examples/internal/notes"
	"github.com/mcpbridge/mcpbridge/gateway"
)

func main() {
	address := flag.String("listen", "127.0.0.1:2526", "the host:port to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, address string) error {
	g, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{
			// A server elsewhere has a URL or a Command instead of a Handler.
			{Name: "notes", Handler: notes.Handler(map[string]string{"today": "buy milk"})},
		},
		Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	listener, err := gateway.Listen(ctx, address, 0)
	if err != nil {
		return err
	}
	fmt.Printf("listening at http://%s/mcp/notes\n", listener.Addr())

	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Shutdown
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	return errors.Join(err, end(g, server))
}

// end ends the gateway in the order that it wants: an HTTP server waits for open streams,
// so these end first.
func end(g *gateway.Gateway, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g.EndStreams()
	return errors.Join(server.Shutdown(ctx), g.Shutdown(ctx))
}
