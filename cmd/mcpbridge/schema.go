package main

import (
	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

func newSchemaCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration",
		Long: `Prints a JSON Schema by which editors complete and check a configuration. A YAML
file names it in its first line:
  # yaml-language-server: $schema=config.schema.json`,
		Example: `  mcpbridge schema > config.schema.json`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			return output.Bytes(p.stdout, config.JSONSchema())
		},
	}
}
