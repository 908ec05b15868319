package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

func newListCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	ask := a.command(0, "", func(ctx context.Context, p *client.Printer, words []string) error {
		if len(words) > 0 {
			return usageError("%q is too much; ls takes one server", words[0])
		}
		return p.List(ctx)
	})
	cmd := &cobra.Command{
		Use:   "ls [URL | NAME] [-c FILE]\n  mcpbridge ls -- COMMAND ARGS...",
		Short: "List what a server or a group has, or those of a file",
		Long: `Lists the tools, prompts and resources of a server, which is named as for call
and may be of any revision. With a file and no NAME it lists the file's servers
and groups, and asks none.

Exit codes: 0 done; 1 the server could not be asked.`,
		Example: `  mcpbridge ls http://127.0.0.1:2526/mcp/notebook
  mcpbridge ls -c config.yaml
  mcpbridge ls -c config.yaml files --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.path == "" && len(args) == 1 && cmd.ArgsLenAtDash() < 0 && looksLikeFile(args[0]) {
				a.path, args = args[0], nil
			}
			if a.path != "" && len(args) == 0 {
				return a.listServers()
			}
			return ask(cmd, args)
		},
		ValidArgsFunction: a.complete("", ""),
	}
	a.addFlags(cmd, "print JSON")
	longFlag(cmd.Flags(), &a.long)
	return cmd
}

// listServers prints the servers of the file.
func (a *asking) listServers() error {
	c, warnings, err := loadConfig(config.Options{Path: a.path, Environ: a.environ})
	warn(a.stderr, warnings)
	if err != nil {
		return err
	}
	s := report.NewSummary(c, a.envNames)
	if a.asJSON {
		return output.JSON(a.stdout, s.All())
	}
	tw := output.NewTable(a.stdout, a.long)
	for _, server := range s.Servers {
		disabled := ""
		if server.Disabled {
			disabled = "  (disabled)"
		}
		_, _ = output.Printf(tw, "%s\t%s%s\n", server.Name, server.Target, disabled) // its error comes with Flush
	}
	for _, g := range s.Groups {
		_, _ = output.Printf(tw, "%s\tgroup of %s\n", g.Name, g.Text())
	}
	return tw.Flush()
}
