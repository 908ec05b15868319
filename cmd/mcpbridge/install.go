package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

// backupEnding is that of the copy of a host's file from before wrap --install.
const backupEnding = ".before-mcpbridge"

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
	for _, name := range []string{"install", "uninstall", "file", "binary", "dry-run"} {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func (in *installing) run(p process, servers []string) error {
	if (in.install == "") == (in.uninstall == "") {
		return usageError("want one of --install HOST and --uninstall HOST; see mcpbridge wrap --help")
	}
	host, err := hostNamed(in.install + in.uninstall)
	if err != nil {
		return err
	}
	edit := &hosts.Edit{Host: host, Only: servers}
	if edit.Binary, err = in.program(); err != nil {
		return err
	}
	path, err := hostFile(host, in.file, p.environ)
	if err != nil {
		return err
	}
	f, err := openHostFile(path)
	if err != nil {
		return err
	}
	c, err := in.change(edit, f)
	if err != nil {
		return usageError("%s: %w", path, located(err))
	}
	if in.dryRun {
		if _, err := p.stdout.Write(c.data); err != nil {
			return err
		}
		return c.report(p.stderr, path, "would be changed")
	}
	if err := c.apply(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return c.say(p.stdout, host, f, path)
}

// located puts the line before what is wrong with the JSON of a file.
func located(err error) error {
	if e := (*hosts.SyntaxError)(nil); errors.As(err, &e) {
		return fmt.Errorf("line %d, column %d: not readable as JSON: %s", e.Line, e.Column, e.Why)
	}
	return err
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

// A change is what becomes of a host's file.
type change struct {
	data     []byte // what to write
	backup   []byte // what to keep beside it; nil for nothing
	drop     bool   // the copy is not needed any more
	changed  bool
	outcomes []hosts.Change
}

// change works out what to write. The copy that is kept is always the file as it would
// be without mcpbridge, however often servers were added.
func (in *installing) change(edit *hosts.Edit, f *hostFiling) (c change, err error) {
	if in.uninstall != "" {
		c.data, c.outcomes, err = edit.Uninstall(f.data, f.before)
		c.drop = err == nil && !edit.Wrapped(c.data)
	} else {
		c.data, c.outcomes, err = edit.Install(f.data)
		all := &hosts.Edit{Host: edit.Host, Binary: edit.Binary}
		if err == nil {
			c.backup, _, err = all.Uninstall(f.data, f.before)
		}
	}
	c.changed = err == nil && !bytes.Equal(c.data, f.data)
	return c, err
}

// apply writes the copy before the file, so that there is no moment without one.
func (c *change) apply(f *hostFiling) error {
	if !c.changed {
		return nil
	}
	if c.backup != nil {
		if err := f.write(f.path+backupEnding, c.backup); err != nil {
			return err
		}
	}
	if err := f.write(f.path, c.data); err != nil {
		return err
	}
	if c.drop && f.before != nil {
		return os.Remove(f.path + backupEnding)
	}
	return nil
}

// say tells the user what was done, and what to do next.
func (c *change) say(w io.Writer, host *hosts.Host, f *hostFiling, path string) error {
	if !c.changed {
		return c.report(w, path, "nothing was changed")
	}
	if err := c.report(w, path, "changed"); err != nil {
		return err
	}
	switch {
	case c.backup != nil:
		_, _ = fmt.Fprintf(w, "\nAs it was: %s\n", f.path+backupEnding)
	case c.drop && f.before != nil:
		_, _ = fmt.Fprintf(w, "\nThe copy from before, %s, was removed.\n", f.path+backupEnding)
	}
	_, err := fmt.Fprintf(w, "Restart %s, or have it read its servers again.\n", host.Title)
	return err
}

// report lists the servers with what became of each.
func (c *change) report(w io.Writer, path, what string) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintf(tw, "%s: %s\n", path, what)
	for _, o := range c.outcomes {
		done := "left alone"
		if o.Changed {
			done = "changed"
		}
		line := "  " + o.Server + "\t" + done
		if o.Why != "" {
			line += "\t" + o.Why
		}
		_, _ = fmt.Fprintln(tw, line)
	}
	return tw.Flush() // the writes above end up here, and so does their error
}
