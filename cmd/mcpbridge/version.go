package main

import (
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// versionInfo is what version prints.
type versionInfo struct {
	Version  string          `json:"version"`
	Go       string          `json:"go"`
	Platform string          `json:"platform"`
	Clients  []spec.Revision `json:"clients"` // revisions served to clients
	Servers  []spec.Revision `json:"servers"` // revisions spoken with servers
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the revisions of MCP that are served",
		Example: `  mcpbridge version
  mcpbridge version --json | jq -r '.clients[]'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printVersion(w io.Writer, asJSON bool) error {
	if asJSON {
		return output.JSON(w, thisVersion())
	}
	_, err := output.Printf(w, "%s", output.Block(versionText()))
	return err
}

func thisVersion() versionInfo {
	return versionInfo{
		Version: release.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Clients: spec.AllRevisions(), Servers: spec.AllRevisions(),
	}
}

// versionText is what version prints, and --version.
func versionText() string { return "mcpbridge version " + versionLines() + "\n" }

// versionLines is versionText as cobra's own template for it has it. Another template would be one of
// package text/template, with which the linker keeps all methods of all types.
func versionLines() string {
	v := thisVersion()
	return output.Sprintf("%s (%s, %s)\nclients of revision %s\nservers of revision %s",
		v.Version, v.Go, v.Platform, output.Join(v.Clients), output.Join(v.Servers))
}
