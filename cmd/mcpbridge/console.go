package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/console"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/remember"
)

func newTailCommand(p process) *cobra.Command {
	var o console.TailOptions
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow the calls and changes that pass a running mcpbridge",
		Long: `Prints a line for each call that ends, for what happens during calls, and for
each change that a server reports, as the admin page shows them: 200 at once,
and 25 per second after that. The others are counted.`,
		Example: `  mcpbridge tail
  mcpbridge tail -c config.yaml --server files
  mcpbridge tail --admin unix:/run/mcpbridge/admin.sock --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := p.console(cmd)
			if err != nil {
				return err
			}
			return a.Tail(cmd.Context(), p.stdout, o)
		},
	}
	consoleFlags(cmd)
	cmd.Flags().StringVar(&o.Server, "server", "", "only what passes to and from this server")
	cmd.Flags().StringVar(&o.Filter, "filter", "", "only lines with this text")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print each event as JSON, on a line of its own")
	return cmd
}

func newTopCommand(p process) *cobra.Command {
	var once, asJSON, long bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what a running mcpbridge holds at the moment",
		Long: `Shows the servers with their calls per second, the clients, what is followed
most, and the questions that wait for an answer, again and again on a terminal
and else once, after a second.`,
		Example: `  mcpbridge top
  mcpbridge top -c config.yaml --once
  mcpbridge top --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := p.console(cmd)
			if err != nil {
				return err
			}
			if every < 100*time.Millisecond {
				return usageError("--every is %v, want 100ms at least", every)
			}
			if asJSON {
				return p.printState(cmd.Context(), a)
			}
			if once || !output.IsTerminal(p.stdout) {
				return a.Once(cmd.Context(), p.stdout, long)
			}
			return a.Top(cmd.Context(), p.stdout, every, long)
		},
	}
	consoleFlags(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "print it once, after a second in which calls are counted")
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "how often it is shown again")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it once, as JSON")
	longFlag(cmd.Flags(), &long)
	return cmd
}

func (p process) printState(ctx context.Context, a *console.Admin) error {
	s, err := a.State(ctx)
	if err != nil {
		return err
	}
	return output.JSON(p.stdout, s)
}

func consoleFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("config", "c", "", "the file that serve was given, which has the admin address and its token")
	cmd.Flags().String("admin", "", "host:port or URL of the admin address, or unix: and the path of its socket (default 127.0.0.1:2527)")
	cmd.Flags().String("token", "", "the admin_token; better is MCPBRIDGE_ADMIN_TOKEN, which other users can't see")
}

// console returns the admin address that the flags name, or else the configuration.
func (p process) console(cmd *cobra.Command) (*console.Admin, error) {
	fs := cmd.Flags()
	token, _ := fs.GetString("token")
	path, _ := fs.GetString("config")
	at, _ := fs.GetString("admin")
	if token == "" {
		token, _ = value.Environ(p.environ)("MCPBRIDGE_ADMIN_TOKEN")
	}
	if at != "" && path == "" {
		address, err := console.ParseAddress(at)
		if err != nil {
			return nil, usageError("%v", err)
		}
		a := &console.Admin{Address: address, Token: token}
		return a, a.LearnToken(remember.StateDir(p.environ))
	}
	c, address, err := p.ofServe(cmd, path)
	if err != nil {
		return nil, err
	}
	a := &console.Admin{Address: address, Token: cmp.Or(token, c.AdminToken)}
	return a, a.LearnToken(stateDir(c, p.environ))
}
