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
	ledger, refuse string
	items, page    int
	ttl            time.Duration
	tool           string
}

func main() {
	var f flags
	flag.StringVar(&f.http, "http", "", "serve Streamable HTTP at `ADDR` (host:port) instead of stdio")
	flag.StringVar(&f.admin, "admin", "", "serve /admin at `ADDR`")
	flag.StringVar(&f.ledger, "ledger", "", "append the ledger to `FILE`")
	flag.StringVar(&f.refuse, "refuse", "", "acknowledge none of the URIs in `FILE`")
	flag.IntVar(&f.items, "items", 60, "serve so many res://item/NNN")
	flag.IntVar(&f.page, "page", 0, "list so many to a page; 0 means 1000")
	flag.DurationVar(&f.ttl, "ttl", 0, "let lists and discovery be cached so long")
	flag.StringVar(&f.tool, "tool", "", "have another tool, of this `NAME`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "modern-go:", err)
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
	b := newBoard(l, f)
	l.add(entry{What: "start", PID: os.Getpid()})
	g := newGate(b)
	if f.admin != "" {
		admin, _, err := listenAndServe(f.admin, adminHandler(b, g))
		if err != nil {
			return err
		}
		defer admin.Close()
	}
	if f.http == "" {
		return b.server.Run(ctx, &mcp.StdioTransport{})
	}
	hs, failed, err := listenAndServe(f.http, g)
	if err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return goodbye(hs, b)
	}
}

// goodbye ends the listen streams with their results, then the server.
func goodbye(hs *http.Server, b *board) error {
	b.listens.end(nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := hs.Shutdown(ctx); err != nil { // a call is still running
		return hs.Close()
	}
	return nil
}

// listenAndServe listens, and serves in a goroutine that ends with the server;
// failed then has the reason if it is not that the server was closed.
func listenAndServe(addr string, h http.Handler) (hs *http.Server, failed <-chan error, err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(os.Stderr, "modern-go: listening on http://%s\n", l.Addr())
	hs = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	errs := make(chan error, 1)
	go func() {
		if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			errs <- err
		}
	}()
	return hs, errs, nil
}
