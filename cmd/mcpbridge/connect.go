package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/guard"
)

// connect asks every server of a configuration, as serve does at its start, and prints how
// each answered. The error says that one did not.
func (p process) connect(ctx context.Context, c *config.Config, out io.Writer) (err error) {
	log := slog.New(slog.DiscardHandler)
	keep := guard.New(log)
	defer keep.Close() // after all that it minds
	o := newOptions(c, false, p, log, keep)
	options.WithoutAccess(o)
	g, err := gateway.New(*o)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), options.Closing(c.Drain)+killTime)
		defer cancel()
		err = errors.Join(err, g.Shutdown(ctx))
	}()
	g.Start()
	starting := func(s gateway.ServerSnapshot) bool { return s.State == gateway.StateStarting }
	for slices.ContainsFunc(g.Snapshot().Servers, starting) && ctx.Err() == nil { // timeouts.connect bounds each
		time.Sleep(20 * time.Millisecond)
	}
	return printStates(p.secrets.Writer(out), g.Snapshot().Servers)
}

// printStates prints how servers answered. The error says that one did not.
func printStates(out io.Writer, servers []gateway.ServerSnapshot) error {
	tw, down := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0), 0
	_, _ = output.Printf(tw, "\nSERVER\tSTATE\tREASON\n")
	for _, s := range servers {
		if s.State != gateway.StateReady {
			down++
		}
		_, _ = output.Printf(tw, "%s\t%s\t%s\n", s.Name, s.State, s.Error)
	}
	if err := tw.Flush(); err != nil || down == 0 {
		return err
	}
	return fmt.Errorf("%d of %d servers can't be used; probe says more of each: mcpbridge probe", down, len(servers))
}
