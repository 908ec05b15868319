package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

// A pinning is one run of the command pin.
type pinning struct {
	asking
	client.Pinning
}

func newPinCommand(p process) *cobra.Command {
	a := &pinning{asking: asking{target: target{process: p}}}
	cmd := &cobra.Command{
		Use:   "pin NAME -c FILE [TOOL...]",
		Short: "Show and accept changes of a server's tools",
		Long: `Compares the definitions of a server's tools with those that were accepted, and
shows what has changed. With --accept these are accepted, or those of them that
are named. A server with pin: refuse hides other tools and refuses calls of them,
one with pin: warn tells of them in the log; processes that run take notice.

Exit codes: 0 nothing differs, or it was accepted; 1 something differs, or the
server could not be asked.`,
		Example: `  mcpbridge pin files -c config.yaml
  mcpbridge pin files -c config.yaml --accept
  mcpbridge pin files -c config.yaml --accept read_file`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.path == "" || len(args) == 0 {
				return usageError("which server? Give its NAME in a file, as in mcpbridge pin files -c config.yaml")
			}
			a.inner, a.single, a.listed = true, true, a.Listed
			return a.command(0, "", a.run)(cmd, args)
		},
		ValidArgsFunction: a.complete(spec.MethodToolsList, "name"),
	}
	a.addFlags(cmd, "print the changes as JSON")
	cmd.Flags().BoolVar(&a.Accept, "accept", false, "accept the changes")
	return cmd
}

// run compares the tools, and accepts what differs if it is to.
func (a *pinning) run(ctx context.Context, p *client.Printer, tools []string) (err error) {
	var end func(context.Context) error
	a.Server, a.Audit = a.config.Servers[0].Name, a.config.Audit
	if a.Store, end, err = a.pinStore(); err != nil {
		return err
	}
	defer func() { _ = end(context.WithoutCancel(ctx)) }() // it has joined nobody
	return p.Pin(ctx, &a.Pinning, tools)
}

// pinStore returns where tools are pinned: where serve does.
func (a *pinning) pinStore() (pin.Store, func(context.Context) error, error) {
	log := slog.New(slog.DiscardHandler)
	o := newOptions(a.config, false, a.process, log, nil)
	if err := options.AddReplicaTLS(o.Replicas, a.config.Replicas, log); err != nil {
		return nil, nil, err
	}
	store, end, err := hook.PinStore(o)
	if err == nil && store == nil {
		err = errors.New("there is no home directory to keep accepted tools in; set state_dir")
	}
	return store, end, err
}
