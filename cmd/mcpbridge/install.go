package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// An installing puts mcpbridge into a host's configuration file, or takes it out.
type installing struct {
	install, uninstall string // the host
	file, binary       string
	dryRun             bool
}

func (in *installing) flags(fs *pflag.FlagSet) {
	fs.StringVar(&in.install, "install", "", "`HOST` whose configuration file is rewritten to run its servers under wrap")
	fs.StringVar(&in.uninstall, "uninstall", "", "`HOST` in whose configuration file that is undone")
	fs.StringVar(&in.file, "file", "", "the host's file (default where the host has it)")
	fs.StringVar(&in.binary, "binary", "", "the command to write into the file (default the path of this program)")
	fs.BoolVar(&in.dryRun, "dry-run", false, "print what the file would be, and write nothing")
}

// asked reports whether wrap is to change a file instead of serving.
func (in *installing) asked(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"install", "uninstall", "file", "binary", "dry-run"}, cmd.Flags().Changed)
}

func (in *installing) run(p process, servers []string, all bool) error {
	if all {
		return usageError("--all is for a FILE; --install HOST without names takes all servers of the host, each with an entry of its own; see mcpbridge wrap --help")
	}
	if (in.install == "") == (in.uninstall == "") {
		return usageError("want one of --install HOST and --uninstall HOST; see mcpbridge wrap --help")
	}
	host, err := hostNamed(in.install + in.uninstall)
	if err != nil {
		return err
	}
	edit := &hostfile.Edit{Host: host, Only: servers}
	if edit.Binary, err = in.program(); err != nil {
		return err
	}
	path, err := hostFile(host, in.file, p.environ)
	if err != nil {
		return err
	}
	c, f, err := in.edit(p, edit, path)
	for again := 0; errors.Is(err, install.ErrWritten) && again < installTries; again++ {
		c, f, err = in.edit(p, edit, path)
	}
	if err != nil {
		return err
	}
	if in.dryRun {
		return c.Report(p.stderr, path, "would be changed")
	}
	return c.Say(p.stdout, host, f, path)
}

// installTries is how often an edit is made anew, if the host has written its file meanwhile.
const installTries = 10

// edit reads the host's file, and changes it, or prints what it would be.
func (in *installing) edit(p process, edit *hostfile.Edit, path string) (c install.Change, f *install.File, err error) {
	if f, err = install.Open(path); err != nil {
		return c, f, err
	}
	change := install.Wrap
	if in.uninstall != "" {
		change = install.Unwrap
	}
	if c, err = change(edit, f); err != nil {
		return c, f, usageError("%s: %w", path, install.Located(err))
	}
	if in.dryRun {
		return c, f, output.Bytes(p.stdout, c.Data)
	}
	if err = c.Apply(f); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, f, err
}

// program is the command that the host is to start.
func (in *installing) program() (string, error) {
	if in.binary != "" {
		return in.binary, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w; name it with --binary", err)
	}
	if strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "", usageError("go run leaves no program that the host could start; build one, as in go build -o ~/bin/mcpbridge ./cmd/mcpbridge, or name it with --binary")
	}
	return path, nil
}
