package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
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

	mu          sync.Mutex // guards definitions
	definitions [][]byte   // of tools, as the server said them
}

// everything is what a client can declare, in forms that servers look for: some list tools to
// clients alone that can answer what these ask.
var everything = []byte(`{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}`)

// note is told of each definition that the server lists.
func (a *pinning) note(definition []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.definitions = append(a.definitions, slices.Clone(definition))
}

// list has the server list its tools to a client that can everything, and to one that can
// nothing.
func (a *pinning) list(ctx context.Context, p *client.Printer) ([][]byte, error) {
	for _, capabilities := range [][]byte{everything, []byte("{}")} {
		p.Server.Declare(capabilities)
		if _, err := p.All(ctx, spec.MethodToolsList, spec.Array(spec.MethodToolsList)); err != nil {
			return nil, fmt.Errorf("listing the tools of %s: %w", p.Name, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.definitions, nil
}

// store returns where tools are pinned: where serve does.
func (a *pinning) store() (pin.Store, func(context.Context) error, error) {
	log := slog.New(slog.DiscardHandler)
	o := newOptions(a.config, false, a.process, log, nil)
	if err := options.AddReplicaTLS(o.Replicas, a.config.Replicas, log); err != nil {
		return nil, nil, err
	}
	store, end, err := hook.PinStore(o)
	if err == nil && store == nil {
		err = errors.New("there is no home directory to keep accepted tools in; set state_dir")
	}
	return store, end, err
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
			a.inner, a.listed = true, a.note
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
	name := a.config.Servers[0].Name
	store, end, err := a.store()
	if err != nil {
		return err
	}
	defer func() { _ = end(context.WithoutCancel(ctx)) }() // it has joined nobody
	kept, _, err := store.Load(ctx, name)
	if err != nil {
		return err
	}
	definitions, err := a.list(ctx, p)
	if err != nil {
		return err
	}
	changes := kept.Compare(definitions)
	if len(tools) > 0 {
		changes = slices.DeleteFunc(changes, func(c pin.Change) bool { return !slices.Contains(tools, c.Tool) })
	}
	if err := a.show(p.Out, changes); err != nil {
		return err
	}
	switch {
	case a.accept:
		complete := len(tools) == 0
		return a.keep(ctx, p.Out, store, changes, definitions, complete)
	case len(changes) > 0:
		return fmt.Errorf("tools of %s that differ from what was accepted: %d; accept them with --accept", name, len(changes))
	}
	return nil
}

// keep accepts changes. complete says that they are all of them.
func (a *pinning) keep(ctx context.Context, w io.Writer, store pin.Store, changes []pin.Change, definitions [][]byte, complete bool) error {
	told := pinned.Record(a.config.Audit, a.config.Servers[0].Name, changes)
	if told != nil && a.config.Audit.Required {
		return fmt.Errorf("nothing was accepted, since the audit log is required: %w", told)
	}
	kept, err := pin.Update(ctx, store, a.config.Servers[0].Name, func(f *pin.File) {
		for _, c := range changes {
			f.Accept(c)
		}
		if complete {
			f.Complete = true
			f.Renew(definitions)
		}
	})
	if err = errors.Join(err, told); err != nil || a.asJSON {
		return err
	}
	_, err = output.Printf(w, "tools accepted: %d\n", len(kept.Tools))
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
