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
)

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at `ADDR` (host:port) instead of stdio")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

// run serves until ctx or standard input ends.
func run(ctx context.Context, addr string) error {
	s := &server{}
	if addr == "" {
		return serveLines(ctx, s, os.Stdin, os.Stdout)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	hs := &http.Server{Handler: &overHTTP{s}, ReadHeaderTimeout: 10 * time.Second}
	over := context.AfterFunc(ctx, func() { _ = hs.Close() }) // streams don't end by themselves
	defer over()
	if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
