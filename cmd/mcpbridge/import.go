package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

func newImportCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "import HOST [FILE]",
		Short: "Print a configuration with the servers of a desktop client",
		Long: `Reads the configuration file of a desktop client and prints a configuration of
mcpbridge with the same servers. What has no meaning here stands above the server as
a comment. Values are printed as they are in the file, secrets too.

HOST is claude (Claude Desktop), claude-code, vscode, cursor, windsurf, cline, gemini,
codex or zed. Without FILE it is where the host has it: in the current folder, where the
host has one for each project, or the user's.

A client's file can be given to serve and check as it is, too.`,
		Example: `  mcpbridge import claude > config.yaml
  mcpbridge import vscode .vscode/mcp.json > config.yaml
  mcpbridge check -c config.yaml`,
		ValidArgs: hostNames(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usageError("want a host and at most one file; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := hostNamed(args[0])
			if err != nil {
				return err
			}
			path, err := hostFile(h, strings.Join(args[1:], ""), p.environ)
			if err != nil {
				return err
			}
			text, err := config.Import(h, path, p.environ)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return output.Bytes(p.stdout, text)
		},
	}
}

func hostNames() []string {
	var names []string
	for _, h := range hostfile.All {
		names = append(names, h.Name)
	}
	return names
}

// hostNamed returns the host that the user means.
func hostNamed(name string) (*hostfile.Host, error) {
	if h := hostfile.Named(strings.ToLower(name)); h != nil {
		return h, nil
	}
	if strings.EqualFold(name, "continue") {
		return nil, usageError("%s", hostfile.ContinueAdvice)
	}
	return nil, usageError("%q is no host that mcpbridge knows; write one of %s", name, strings.Join(hostNames(), ", "))
}

// hostFile returns the file that was given, or the host's.
func hostFile(h *hostfile.Host, given string, environ []string) (string, error) {
	if given != "" {
		return given, nil
	}
	files := h.Files(layer.ThisMachine(environ))
	if file := install.Find(h, files); file != "" {
		return file, nil
	}
	return "", usageError("%s has no file at %s; name the file", h.Title, strings.Join(files, " or "))
}
