package main

import (
	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// nameFlag lets the user choose the name of the one server on the command line.
func nameFlag(cmd *cobra.Command) {
	cmd.Flags().String("name", "", "what to call the server (default after its package, program or host)")
}

// rename applies the flag.
func rename(cmd *cobra.Command, o *config.Options) error {
	name, err := cmd.Flags().GetString("name")
	switch {
	case err != nil || name == "":
		return nil // not a command with the flag, or it is not set
	case len(o.Servers) != 1 || o.Path != "":
		return usageError("--name names the server of the command line; leave it out, or give a URL, or -- and a command")
	case hostfile.Name(name) != name:
		return usageError("--name %q: a name is part of an endpoint's path; use letters, digits, dots, - and _, at most 64", name)
	}
	o.Servers[0].Name = name
	return nil
}
