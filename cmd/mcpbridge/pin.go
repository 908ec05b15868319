package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/pinned"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A pinning is one run of the command pin.
type pinning struct {
	asking
	accept bool
}

func newPinCommand(p process) *cobra.Command {
	a := &pinning{asking: asking{target: target{process: p}}}
	cmd := &cobra.Command{
		Use:   "pin NAME -c FILE [TOOL...]",
		Short: "Show and accept changes of a server's tools",
		Long: `Compares the definitions of a server's tools with those that were accepted, and
shows what has changed. With --accept these are accepted, or those of them that
are named. A server with pin: refuse hides other tools and refuses calls of them,
one with pin: warn tells of them in the log; processes that run take notice.

Exit codes: 0 nothing differs, or it was accepted; 1 something differs, or the
server could not be asked.`,
		Example: `  mcpbridge pin files -c config.yaml
  mcpbridge pin files -c config.yaml --accept
  mcpbridge pin files -c config.yaml --accept read_file`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.path == "" || len(args) == 0 {
				return usageError("which server? Give its NAME in a file, as in mcpbridge pin files -c config.yaml")
			}
			return a.command(0, "", a.run)(cmd, args)
		},
		ValidArgsFunction: a.complete(spec.MethodToolsList, "name"),
	}
	a.addFlags(cmd, "print the changes as JSON")
	cmd.Flags().BoolVar(&a.accept, "accept", false, "accept the changes")
	return cmd
}

// run compares the tools, and accepts what differs if it is to.
func (a *pinning) run(ctx context.Context, p *client.Printer, tools []string) error {
	name, dir := a.config.Servers[0].Name, stateDir(a.config, a.environ)
	if dir == "" {
		return fmt.Errorf("there is no home directory to keep accepted tools in; set state_dir")
	}
	kept, err := pin.Read(dir, name)
	if err != nil {
		return err
	}
	listed, err := p.All(ctx, spec.MethodToolsList, spec.Array(spec.MethodToolsList))
	if err != nil {
		return fmt.Errorf("listing the tools of %s: %w", p.Name, err)
	}
	changes := kept.Compare(slices.Collect(wire.Elements(listed)))
	if len(tools) > 0 {
		changes = slices.DeleteFunc(changes, func(c pin.Change) bool { return !slices.Contains(tools, c.Tool) })
	}
	if err := a.show(p.Out, changes); err != nil {
		return err
	}
	switch {
	case a.accept:
		kept.Complete = kept.Complete || len(tools) == 0
		return a.keep(p.Out, kept, changes, dir)
	case len(changes) > 0:
		return fmt.Errorf("tools of %s that differ from what was accepted: %d; accept them with --accept", name, len(changes))
	}
	return nil
}

func (a *pinning) keep(w io.Writer, kept *pin.File, changes []pin.Change, dir string) error {
	for _, c := range changes {
		kept.Accept(c)
	}
	told := pinned.Record(a.config.Audit, a.config.Servers[0].Name, changes)
	if told != nil && a.config.Audit.Required {
		return fmt.Errorf("nothing was accepted, since the audit log is required: %w", told)
	}
	if err := errors.Join(kept.Write(dir), told); err != nil || a.asJSON {
		return err
	}
	_, err := output.Printf(w, "tools accepted: %d\n", len(kept.Tools))
	return err
}

func (a *pinning) show(w io.Writer, changes []pin.Change) error {
	if a.asJSON {
		return output.JSON(w, changes)
	}
	var text bytes.Buffer
	for _, c := range changes {
		describeChange(&text, c)
	}
	if len(changes) == 0 {
		text.WriteString("nothing differs from what was accepted\n")
	}
	_, err := output.Printf(w, "%s", output.Block(text.String()))
	return err
}

// describeChange writes what has changed, member by member. A server's words can't do
// anything to the terminal.
func describeChange(w io.Writer, c pin.Change) {
	what := "changed"
	switch {
	case c.Was == nil:
		what = "new"
	case c.Is == nil:
		what = "gone"
	}
	write := func(line string) { _, _ = output.Printf(w, "%s\n", line) } // into memory
	write(fmt.Sprintf("%-8s %s", what, c.Tool))
	for k, was := range wire.Members(c.Was) {
		if is := wire.Get(c.Is, k.String()); c.Is != nil && !equalJSON(was, is) {
			write(fmt.Sprintf("  - %s: %s", k.String(), was))
		}
	}
	for k, is := range wire.Members(c.Is) {
		if was := wire.Get(c.Was, k.String()); !equalJSON(was, is) {
			write(fmt.Sprintf("  + %s: %s", k.String(), is))
		}
	}
}

// equalJSON reports whether two values are the same, nil for none.
func equalJSON(a, b []byte) bool {
	return a != nil && b != nil && bytes.Equal(wire.AppendCanonical(nil, a), wire.AppendCanonical(nil, b))
}
