package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func newReadCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "read URL URI | NAME URI -c FILE\n  mcpbridge read URI -- COMMAND ARGS...",
		Short: "Read a resource",
		Long: `Reads a resource and prints its text; of contents that are no text it says what
they are. The server is named as for call, and may be of any revision.

Exit codes: 0 it was read; 1 it could not be.`,
		Example: `  mcpbridge read http://127.0.0.1:2526/mcp/notebook note://todo
  mcpbridge read -c config.yaml notebook note://todo --json`,
		RunE: a.command(1, "want the URI of a resource", func(ctx context.Context, p *client.Printer, words []string) error {
			if len(words) > 1 {
				return usageError("%q is too much; read takes one URI", words[1])
			}
			return p.Read(ctx, words[0])
		}),
		ValidArgsFunction: a.complete(spec.MethodResourcesList, "uri"),
	}
	a.addFlags(cmd, "print the JSON-RPC response as it came")
	return cmd
}

func newPromptCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "prompt URL PROMPT [key=value]... | NAME PROMPT -c FILE\n  mcpbridge prompt PROMPT [key=value]... -- COMMAND ARGS...",
		Short: "Get a prompt",
		Long: `Gets a prompt and prints its messages, each with who is to say it. The server is
named as for call, and may be of any revision.

Exit codes: 0 the server gave it; 1 it did not.`,
		Example: `  mcpbridge prompt http://127.0.0.1:2526/mcp/notebook summarize name=todo
  mcpbridge prompt -c config.yaml notebook summarize name=todo --json`,
		RunE: a.command(1, "want the name of a prompt", func(ctx context.Context, p *client.Printer, words []string) error {
			return p.Prompt(ctx, words[0], words[1:])
		}),
		ValidArgsFunction: a.complete(spec.MethodPromptsList, "name"),
	}
	a.addFlags(cmd, "print the JSON-RPC response as it came")
	return cmd
}
