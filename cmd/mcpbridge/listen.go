package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func newListenCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	t := &a.target
	var want mcp.Filter
	var id string
	cmd := &cobra.Command{
		Use:   "listen URL | NAME -c FILE | -- COMMAND ARGS...",
		Short: "Follow the changes of a server, a line for each",
		Long: `Opens a subscriptions/listen stream and prints the acknowledgment, then a line
for each change as it comes. A line is a cue to read again; it carries no
content. The server is named as for call, and may be of any revision.

Exit codes: 0 the server ended the stream, or you did; 1 it was refused, or a
certificate was when the connection was opened again; 3 it broke off, which is a reason to listen again.`,
		Example: `  mcpbridge listen http://127.0.0.1:2526/mcp/notebook --resource note://todo
  mcpbridge listen http://127.0.0.1:2526/mcp/notebook --tools --prompts --json
  mcpbridge listen -c config.yaml files --resources`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.read(cmd, args); err != nil {
				return err
			}
			return a.listen(cmd, want, client.ParseID(id))
		},
		ValidArgsFunction: a.complete("", ""),
	}
	fs := cmd.Flags()
	t.flags(fs)
	fs.BoolVar(&want.Tools, "tools", false, "follow the list of tools")
	fs.BoolVar(&want.Prompts, "prompts", false, "follow the list of prompts")
	fs.BoolVar(&want.Resources, "resources", false, "follow the list of resources")
	fs.StringArrayVar(&want.URIs, "resource", nil, "follow this resource; may be repeated")
	fs.StringVar(&id, "id", "1", "id of the request, which comes back on every frame")
	fs.BoolVar(&a.asJSON, "json", false, "print each JSON-RPC message as it comes")
	return cmd
}

// listen follows what is wanted of the server.
func (a *asking) listen(cmd *cobra.Command, want mcp.Filter, id wire.ID) error {
	switch {
	case len(a.words) > 0:
		return usageError("%q is too much; write --resource %[1]s to follow a resource", a.words[0])
	case len(want.Topics("")) == 0:
		return usageError("nothing to listen to; add --tools, --prompts, --resources or --resource URI")
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	a.dialed = (&client.Reconnects{Server: a.name(), Out: a.stderr, Cancel: cancel}).Dialed
	p, err := a.printer(cmd)
	if err != nil {
		return err
	}
	defer p.Close()
	err = p.Follow(ctx, id, want)
	if errors.Is(err, client.ErrLost) {
		return &exitError{exitLost, fmt.Errorf("%w; listen again, and read again what you follow", err)}
	}
	return err
}
