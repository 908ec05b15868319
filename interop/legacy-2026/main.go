package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at `ADDR` (host:port) instead of stdio")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "legacy-2026:", err)
		os.Exit(1)
	}
}

// run serves until ctx or standard input ends.
func run(ctx context.Context, addr string) error {
	s := newServer()
	if addr == "" {
		return s.Run(ctx, &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "legacy-2026: listening on http://%s\n", l.Addr())
	hs := &http.Server{Handler: handler(s), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = hs.Close() })
	defer stop()
	if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves sessions of s: the SDK makes them stateful unless told otherwise.
func handler(s *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "legacy-2026", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"paris", "park", "party"}, Total: 3}}, nil
		},
		// The SDK keeps the subscriptions; it offers them if there are handlers.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	addContentTools(s)
	addAskingTools(s)
	addRoundTools(s)
	addStatelessTools(s)
	addResources(s)
	addPrompts(s)
	return s
}
