package main

import (
	"cmp"
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
	return printStates(p.secrets.Writer(out), g.Snapshot().Servers, sides(c, g))
}

// sides returns, of servers that may serve each client in its own era, which side serves whom.
func sides(c *config.Config, g *gateway.Gateway) map[string]string {
	told := make(map[string]string)
	for _, s := range hook.Inner(g).Status(false).Servers {
		if i := slices.IndexFunc(c.Servers, func(of config.Server) bool { return of.Name == s.Name }); i >= 0 && c.Servers[i].ByClient() {
			told[s.Name] = s.EraReason
		}
	}
	return told
}

// printStates prints how servers answered, or which side of them serves whom. The error says
// that one did not answer.
func printStates(out io.Writer, servers []gateway.ServerSnapshot, sides map[string]string) error {
	tw, down := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0), 0
	_, _ = output.Printf(tw, "\nSERVER\tSTATE\tREASON\n")
	for _, s := range servers {
		if s.State != gateway.StateReady {
			down++
		}
		_, _ = output.Printf(tw, "%s\t%s\t%s\n", s.Name, s.State, cmp.Or(s.Error, sides[s.Name]))
	}
	if err := tw.Flush(); err != nil || down == 0 {
		return err
	}
	return fmt.Errorf("%d of %d servers can't be used; probe says more of each: mcpbridge probe", down, len(servers))
}
