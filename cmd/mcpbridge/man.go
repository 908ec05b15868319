//go:build man

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/mcpbridge/mcpbridge/internal/release"
)

// addMan adds the command by which packaging/generate writes the man pages. Only builds for
// that have it.
func addMan(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "man DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root.DisableAutoGenTag = true // it has the date
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "mcpbridge " + release.Version(), Manual: "mcpbridge"}, args[0])
		},
	})
}
