package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// BackupEnding is that of the copy of a host's file from before wrap --install.
const BackupEnding = ".before-mcpbridge"

// Located puts the line before what is wrong with the JSON or TOML of a file.
func Located(err error) error {
	if e := (*hostfile.SyntaxError)(nil); errors.As(err, &e) {
		return fmt.Errorf("line %d, column %d: not readable as %s: %s; correct it there, or just before", e.Line, e.Column, e.Format, e.Why)
	}
	return err
}

// A Change is what becomes of a host's file.
type Change struct {
	Data     []byte // what to write
	backup   []byte // what to keep beside it; nil for nothing
	drop     bool   // the copy is not needed any more
	changed  bool
	outcomes []hostfile.Change
	moved    *moved // nil if no servers are moved
}

// Wrap works out what to write to have a host run its servers under wrap. The copy that is
// kept is always the file as it would be without mcpbridge, however often servers were added.
func Wrap(edit *hostfile.Edit, f *File) (c Change, err error) {
	if advice := edit.Host.Foreign(f.data); advice != "" {
		return c, errors.New(advice)
	}
	c.Data, c.outcomes, err = edit.Install(f.data)
	all := &hostfile.Edit{Host: edit.Host, Binary: edit.Binary}
	if err == nil {
		c.backup, _, err = all.Uninstall(f.data, f.before)
	}
	c.changed = err == nil && !bytes.Equal(c.Data, f.data)
	return c, err
}

// Unwrap works out what to write to undo that.
func Unwrap(edit *hostfile.Edit, f *File) (c Change, err error) {
	c.Data, c.outcomes, err = edit.Uninstall(f.data, f.before)
	c.drop = err == nil && !edit.Wrapped(c.Data)
	c.changed = err == nil && !bytes.Equal(c.Data, f.data)
	return c, err
}

// Apply writes the copy before the file, so that there is no moment without one.
func (c *Change) Apply(f *File) error {
	if !c.changed {
		return nil
	}
	if c.backup != nil {
		if err := f.write(f.path+BackupEnding, c.backup, f.mode()); err != nil {
			return err
		}
	}
	if err := c.moved.write(f); err != nil {
		return err
	}
	if err := f.write(f.path, c.Data, f.mode()); err != nil {
		return errors.Join(err, c.moved.undo())
	}
	if c.drop && f.before != nil {
		if err := os.Remove(f.path + BackupEnding); err != nil {
			return err
		}
	}
	return c.moved.clear()
}

// Say tells the user what was done, and what to do next.
func (c *Change) Say(w io.Writer, host *hostfile.Host, f *File, path string) error {
	if !c.changed {
		return c.Report(w, path, "nothing was changed")
	}
	if err := c.Report(w, path, "changed"); err != nil {
		return err
	}
	switch {
	case c.backup != nil:
		_, _ = output.Printf(w, "\nAs it was: %s\n", f.path+BackupEnding)
	case c.drop && f.before != nil:
		_, _ = output.Printf(w, "\nThe copy from before, %s, was removed.\n", f.path+BackupEnding)
	}
	c.moved.say(w, host)
	_, err := output.Printf(w, "Restart %s, or have it read its servers again.\n", host.Title)
	return err
}

// Report lists the servers with what became of each.
func (c *Change) Report(w io.Writer, path, what string) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = output.Printf(tw, "%s: %s\n", path, what)
	for _, o := range c.outcomes {
		done := "left alone"
		if o.Changed || o.Done != "" {
			done = cmp.Or(o.Done, "changed")
		}
		why := ""
		if o.Why != "" {
			why = "\t" + output.Escape(o.Why)
		}
		_, _ = output.Printf(tw, "  %s\t%s%s\n", o.Server, done, output.Block(why))
	}
	return tw.Flush() // the writes above end up here, and so does their error
}
