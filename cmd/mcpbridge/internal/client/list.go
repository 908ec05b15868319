package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// groups are the lists that a server can have, in the order in which ls prints them.
var groups = []struct{ title, capability, method, member string }{
	{"tools", "tools", spec.MethodToolsList, "name"},
	{"prompts", "prompts", spec.MethodPromptsList, "name"},
	{"resources", "resources", spec.MethodResourcesList, "uri"},
	{"resource templates", "resources", spec.MethodResourcesTemplates, "uriTemplate"},
}

// List prints the server's tools, prompts and resources.
func (p *Printer) List(ctx context.Context) error {
	found, err := p.request(ctx, spec.MethodDiscover, nil)
	if err != nil {
		return fmt.Errorf("asking %s what it has: %w", p.Name, err)
	}
	has := make(map[string]json.RawMessage)
	for _, g := range groups {
		if wire.Get(wire.Get(found, "capabilities"), g.capability) == nil {
			continue
		}
		if has[spec.Array(g.method)], err = p.All(ctx, g.method, spec.Array(g.method)); err != nil {
			return fmt.Errorf("listing the %s of %s: %w", g.title, p.Name, err)
		}
	}
	if p.AsJSON {
		return output.JSON(p.Out, has)
	}
	return p.printGroups(has)
}

func (p *Printer) printGroups(has map[string]json.RawMessage) error {
	empty := true
	for _, g := range groups {
		heading := g.title + "\n"
		for item := range wire.Elements(has[spec.Array(g.method)]) {
			if _, err := output.Printf(p.Out, "%s", output.Block(heading)); err != nil {
				return err
			}
			if err := p.entry(item, "  ", g.member); err != nil {
				return err
			}
			heading, empty = "", false
		}
	}
	if empty {
		_, err := output.Printf(p.Out, "it has no tools, no prompts and no resources\n")
		return err
	}
	return nil
}
