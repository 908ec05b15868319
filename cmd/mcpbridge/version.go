package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// release is the version of a build that is not go install's: the linker sets it
// (-X main.release=v1.2.3).
var release string

// version returns the version of this program: that of its release, or the module's as the
// go command stamped it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return cmp.Or(release, info.Main.Version, "(devel)")
}

// implementation is what both peers are told of us.
//
// Spec: 2026-07-28, schema, Implementation.
func implementation() []byte {
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "name", Value: wire.Quote("mcpbridge")},
		wire.Edit{Name: "version", Value: wire.Quote(version())})
}

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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("version takes no arguments; leave %q out", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printVersion(w io.Writer, asJSON bool) error {
	v := versionInfo{
		Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Clients: spec.AllRevisions(), Servers: spec.AllRevisions(),
	}
	if asJSON {
		return output.JSON(w, v)
	}
	_, err := fmt.Fprintf(w, "mcpbridge %s (%s, %s)\nclients of revision %s\nservers of revision %s\n",
		v.Version, v.Go, v.Platform, output.Join(v.Clients), output.Join(v.Servers))
	return err
}
