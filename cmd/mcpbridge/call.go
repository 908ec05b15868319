package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func newCallCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "call URL | NAME -c FILE [TOOL [key=value]...]\n  mcpbridge call [TOOL [key=value]...] -- COMMAND ARGS...",
		Short: "Call a tool, or list the tools",
		Long: `Calls a tool and prints what it answers; progress goes to stderr. Without TOOL
it lists the tools. The server is a URL, of a server or of an endpoint of
mcpbridge, the NAME of one in a file, or a command, which is started for this one
call. It may be of any revision.

A value is read as the tool's schema has it: key=5 is a number where a number
is wanted and text where text is. key:=JSON gives JSON whatever the schema says.

Exit codes: 0 the tool succeeded; 1 it failed, or could not be called.`,
		Example: `  mcpbridge call http://127.0.0.1:2526/mcp/notebook
  mcpbridge call http://127.0.0.1:2526/mcp/notebook edit_note name=todo text="buy milk"
  mcpbridge call https://docs.example.com/mcp search query=x -H "Authorization: Bearer $DOCS_TOKEN"
  mcpbridge call -c config.yaml files read_multiple_files paths:='["a", "b"]' --json
  mcpbridge call list_allowed_directories -- npx -y @modelcontextprotocol/server-filesystem ~/notes`,
		RunE: a.command(0, "", func(ctx context.Context, p *client.Printer, words []string) error {
			if len(words) == 0 {
				return p.ListTools(ctx)
			}
			return p.Call(ctx, words[0], words[1:])
		}),
		ValidArgsFunction: a.complete(spec.MethodToolsList, "name"),
	}
	a.addFlags(cmd, "print the JSON-RPC response as it came, or the tools as JSON")
	longFlag(cmd.Flags(), &a.long)
	return cmd
}

// An asking is one of the commands that ask a server something and print its answer.
type asking struct {
	target
	asJSON bool
	long   bool // of -l
}

// longFlag is -l, of commands that print lists.
func longFlag(fs *pflag.FlagSet, long *bool) {
	fs.BoolVarP(long, "long", "l", false, "print all texts whole, also where a terminal is too narrow")
}

func (a *asking) addFlags(cmd *cobra.Command, asJSON string) {
	a.flags(cmd.Flags())
	cmd.Flags().BoolVar(&a.asJSON, "json", false, asJSON)
}

// command returns what such a command runs. It wants a number of words beside the
// server, which usage describes.
func (a *asking) command(words int, usage string, ask func(context.Context, *client.Printer, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.read(cmd, args); err != nil {
			return err
		}
		if len(a.words) < words {
			return usageError("%s; see what there is with mcpbridge ls", usage)
		}
		p, err := a.printer(cmd)
		if err != nil {
			return err
		}
		defer p.Close()
		err = ask(cmd.Context(), p, a.words)
		if wrong := (*client.WordsError)(nil); errors.As(err, &wrong) {
			return &exitError{exitUsage, err}
		}
		if a.group != nil {
			return err
		}
		return client.AsConfigured(err, a.config.Servers[0].Configured())
	}
}

// printer connects to the server. Who gets the Printer closes its Server.
func (a *asking) printer(cmd *cobra.Command) (*client.Printer, error) {
	heard := client.WaitFor(cmd.Context(), a.stderr, a.environ, a.name())
	server, err := a.open(cmd.Context())
	if err != nil {
		heard()
		return nil, err
	}
	server.WhenHeard(heard)
	return &client.Printer{
		Server: server, Name: a.name(), Out: cmd.OutOrStdout(), Progress: cmd.ErrOrStderr(), AsJSON: a.asJSON, Whole: a.long, Now: time.Now,
	}, nil
}
