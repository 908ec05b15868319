package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Pinning compares the tools of a server with those that were accepted.
type Pinning struct {
	Server string    // its name in the configuration
	Store  pin.Store // what was accepted
	Accept bool      // accept what differs

	// Audit is the log into which changes are written before they are accepted. If it is required,
	// they are not if that fails.
	Audit config.Audit

	mu          sync.Mutex // guards definitions
	definitions [][]byte   // of tools, as the server said them
}

// everything is what a client can declare, in forms that servers look for: some list tools to
// clients alone that can answer what these ask.
var everything = []byte(`{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}`)

// Listed is to be told of each definition that the server lists, as it said it.
func (g *Pinning) Listed(definition []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.definitions = append(g.definitions, slices.Clone(definition))
}

// Pin prints what differs from what was accepted, of all tools or of those that are named, and
// accepts it if it is to.
func (p *Printer) Pin(ctx context.Context, g *Pinning, tools []string) error {
	kept, _, err := g.Store.Load(ctx, g.Server)
	if err != nil {
		return err
	}
	definitions, err := p.definitions(ctx, g)
	if err != nil {
		return err
	}
	changes := kept.Compare(definitions)
	if len(tools) > 0 {
		changes = slices.DeleteFunc(changes, func(c pin.Change) bool { return !slices.Contains(tools, c.Tool) })
	}
	if err := p.changes(changes); err != nil {
		return err
	}
	switch {
	case g.Accept && len(tools) > 0:
		return p.accept(ctx, g, changes, nil)
	case g.Accept:
		return p.accept(ctx, g, changes, definitions)
	case len(changes) > 0:
		return fmt.Errorf("tools of %s that differ from what was accepted: %d; accept them with --accept", g.Server, len(changes))
	}
	return nil
}

// definitions has the server list its tools to a client that can everything, and to one that
// can nothing.
func (p *Printer) definitions(ctx context.Context, g *Pinning) ([][]byte, error) {
	for _, capabilities := range [][]byte{everything, []byte("{}")} {
		p.Server.Declare(capabilities)
		if _, err := p.tools(ctx); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clip(g.definitions), nil
}

// accept accepts changes. all has the definitions of all tools, and is nil if only some were
// looked at.
func (p *Printer) accept(ctx context.Context, g *Pinning, changes []pin.Change, all [][]byte) error {
	told := g.record(changes)
	if told != nil && g.Audit.Required {
		return fmt.Errorf("nothing was accepted, since the audit log is required: %w", told)
	}
	kept, err := pin.Update(ctx, g.Store, g.Server, func(f *pin.File) {
		for _, c := range changes {
			f.Accept(c)
		}
		f.Complete = f.Complete || all != nil
		f.Renew(all)
	})
	if err = errors.Join(err, told); err != nil || p.AsJSON {
		return err
	}
	_, err = output.Printf(p.Out, "tools accepted: %d\n", len(kept.Tools))
	return err
}

func (p *Printer) changes(changes []pin.Change) error {
	if p.AsJSON {
		return output.JSON(p.Out, changes)
	}
	var text bytes.Buffer
	for _, c := range changes {
		describeChange(&text, c)
	}
	if len(changes) == 0 {
		text.WriteString("nothing differs from what was accepted\n")
	}
	_, err := output.Printf(p.Out, "%s", output.Block(text.String()))
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
