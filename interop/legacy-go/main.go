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

// flags are what the command line says.
type flags struct {
	http, admin    string
	eventIDs, json bool
	ledger, refuse string
	items          int
	tool           string
}

func main() {
	var f flags
	flag.StringVar(&f.http, "http", "", "serve Streamable HTTP at `ADDR` (host:port) instead of stdio")
	flag.StringVar(&f.admin, "admin", "", "serve /admin at `ADDR`, also beside stdio")
	flag.BoolVar(&f.eventIDs, "event-ids", false, "give events ids, and replay after Last-Event-ID")
	flag.BoolVar(&f.json, "json", false, "answer POST with JSON instead of a stream")
	flag.StringVar(&f.ledger, "ledger", "", "append the ledger to `FILE`")
	flag.StringVar(&f.refuse, "refuse", "", "refuse to subscribe to the URIs in `FILE`")
	flag.IntVar(&f.items, "items", itemCount, "serve so many resources")
	flag.StringVar(&f.tool, "tool", "", "have another tool, of this `NAME`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "legacy-go:", err)
		os.Exit(1)
	}
}

// run serves until ctx or standard input ends.
func run(ctx context.Context, f flags) error {
	l, err := openLedger(f.ledger)
	if err != nil {
		return err
	}
	defer l.close()
	l.add(entry{What: "start", PID: os.Getpid()})
	b := newBoard(l, f.refuse, f.items)
	b.addNamed(f.tool)
	g := &gate{}
	if f.admin != "" {
		stop, err := serve(f.admin, adminHandler(b, g))
		if err != nil {
			return err
		}
		defer stop()
	}
	if f.http == "" {
		return b.server.Run(ctx, &mcp.StdioTransport{})
	}
	return serveHTTP(ctx, f, b, g)
}

func serveHTTP(ctx context.Context, f flags, b *board, g *gate) error {
	opts := &mcp.StreamableHTTPOptions{JSONResponse: f.json}
	if f.eventIDs {
		opts.EventStore = mcp.NewMemoryEventStore(nil)
	}
	g.next = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return b.server }, opts)
	mux := http.NewServeMux()
	mux.Handle("/mcp", g)
	mux.Handle("/admin/", adminHandler(b, g))
	stop, err := serve(f.http, mux)
	if err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	return nil
}

// serve serves h at addr until stop, which cuts open responses off. The address
// that was taken goes to standard error: addr may name port 0.
func serve(addr string, h http.Handler) (stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "legacy-go: listening on http://%s\n", l.Addr())
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }() // ends with Close
	return func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "legacy-go:", err)
		}
	}, nil
}
