package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// completionTime is how long a person who presses Tab waits for a server at most.
const completionTime = 1500 * time.Millisecond

type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// complete returns what completes the arguments: the servers of a file, and then what
// the server lists, by the member that names an item. A command is not started for that.
func (a *asking) complete(method, member string) completer {
	return func(cmd *cobra.Command, args []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		path, _ := cmd.Flags().GetString("config")
		switch {
		case len(args) == 0 && path != "":
			found = serversOf(path, a.environ)
		case len(args) == 1 && method != "":
			found = a.offered(cmd, args, method, member)
		}
		other := func(c cobra.Completion) bool { return !strings.HasPrefix(c, begun) }
		return slices.DeleteFunc(found, other), cobra.ShellCompDirectiveNoFileComp
	}
}

// serversOf are the names of the servers of a file, each with where it is.
func serversOf(path string, environ []string) []cobra.Completion {
	c, _, err := config.Load(config.Options{Path: path, Environ: environ})
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for i := range c.Servers {
		names = append(names, cobra.CompletionWithDesc(c.Servers[i].Name, c.Servers[i].Target()))
	}
	for i := range c.Groups {
		names = append(names, cobra.CompletionWithDesc(c.Groups[i].Name, "a group of "+strings.Join(c.Groups[i].Members, ", ")))
	}
	return names
}

// offered are the names of what the server lists, each with the first line of what it
// says of itself.
func (a *asking) offered(cmd *cobra.Command, args []string, method, member string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	if a.readFrom(cmd, args, -1) != nil || slices.ContainsFunc(a.config.Servers, func(s config.Server) bool { return s.Command != "" }) {
		return nil
	}
	server, err := a.open(ctx)
	if err != nil {
		return nil
	}
	defer server.Close()
	var names []cobra.Completion
	for name, line := range (&client.Printer{Server: server}).Items(ctx, method, member) {
		names = append(names, cobra.CompletionWithDesc(name, line))
	}
	return names
}
