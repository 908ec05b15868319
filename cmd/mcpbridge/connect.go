package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/guard"
)

// connect asks every server of a configuration, as serve does at its start, and then the
// replicas, as another one would.
func (p process) connect(ctx context.Context, c *config.Config, r *report.Replicas) (states *report.States, err error) {
	log := client.StrayLog(p.stderr, p.secrets.String)
	keep := guard.New(log)
	defer keep.Close() // after all that it minds
	o := newOptions(c, false, p, log, keep)
	options.WithoutAccess(o)
	together := o.Replicas
	o.Replicas = nil // which are asked by themselves
	asked := *o
	asked.Servers = slices.Clone(o.Servers)
	options.AsTheyAre(&asked)
	if states, err = p.askServers(ctx, c, &asked); err != nil || together == nil {
		return states, err
	}
	if err = options.AddReplicaTLS(together, c.Replicas, log); err != nil {
		return states, err
	}
	o.Replicas = together
	compared, err := hook.CompareReplicas(ctx, o, time.Now)
	states.Replicas = report.NewReplicaStates(r, compared, p.secrets.String)
	return states, err
}

// askServers returns how every server answered.
func (p process) askServers(ctx context.Context, c *config.Config, o *gateway.Options) (states *report.States, err error) {
	g, err := gateway.New(*o)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), options.Closing(c.Drain)+killTime)
		defer cancel()
		err = errors.Join(err, g.Shutdown(ctx))
	}()
	g.Start()
	if s := output.ScreenOf(p.stderr); s != nil && !client.Dumb(p.environ) {
		defer client.WatchStart(ctx, s, func() []gateway.ServerSnapshot { return g.Snapshot().Servers }).Stop()
	}
	starting := func(s gateway.ServerSnapshot) bool { return s.State == gateway.StateStarting }
	for slices.ContainsFunc(g.Snapshot().Servers, starting) && ctx.Err() == nil { // timeouts.connect bounds each
		time.Sleep(20 * time.Millisecond)
	}
	told := sides(c, g)
	states = &report.States{Servers: []report.State{}, Groups: report.NamesOfGroups(ctx, c, hook.Inner(g).Ask)}
	for _, s := range g.Snapshot().Servers {
		state := report.State{
			Name: s.Name, State: string(s.State), Ready: s.State == gateway.StateReady, Reason: p.secrets.String(cmp.Or(s.Error, told[s.Name])),
		}
		if state.Ready {
			state.Unmatched = report.Unmatched(ctx, c, s.Name, hook.Inner(g).Ask)
		}
		states.Servers = append(states.Servers, state)
	}
	return states, nil
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
