package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// groups are what a server can have, in the order in which ls shows it.
var groups = []struct{ title, capability, method, member string }{
	{"tools", "tools", spec.MethodToolsList, "name"},
	{"prompts", "prompts", spec.MethodPromptsList, "name"},
	{"resources", "resources", spec.MethodResourcesList, "uri"},
	{"resource templates", "resources", spec.MethodResourcesTemplates, "uriTemplate"},
}

func newListCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	ask := a.command(0, "", func(ctx context.Context, t *caller, words []string) error {
		if len(words) > 0 {
			return usageError("%q is too much; ls takes one server", words[0])
		}
		return t.listAll(ctx)
	})
	cmd := &cobra.Command{
		Use:   "ls [URL | NAME] [-c FILE]\n  mcpbridge ls -- COMMAND ARGS...",
		Short: "List what a server has, or the servers of a file",
		Long: `Lists the tools, prompts and resources of a server, which is named as for call
and may be of any revision. With a file and no NAME it lists the file's servers,
and asks none.

Exit codes: 0 done; 1 the server could not be asked.`,
		Example: `  mcpbridge ls http://127.0.0.1:2526/mcp/notebook
  mcpbridge ls -c config.yaml
  mcpbridge ls -c config.yaml files --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.path == "" && len(args) == 1 && cmd.ArgsLenAtDash() < 0 && looksLikeFile(args[0]) {
				a.path, args = args[0], nil
			}
			if a.path != "" && len(args) == 0 {
				return a.listServers()
			}
			return ask(cmd, args)
		},
		ValidArgsFunction: a.complete("", ""),
	}
	a.addFlags(cmd, "print JSON")
	return cmd
}

// listServers prints the servers of the file.
func (a *asking) listServers() error {
	c, warnings, err := loadConfig(config.Options{Path: a.path, Environ: a.environ})
	warn(a.stderr, warnings)
	if err != nil {
		return err
	}
	s := summarize(c)
	if a.asJSON {
		return printJSON(a.stdout, s.Servers)
	}
	tw := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	for _, server := range s.Servers {
		line := server.Name + "\t" + server.Target
		if server.Disabled {
			line += "  (disabled)"
		}
		_, _ = fmt.Fprintln(tw, printable(line)) // its error comes with Flush
	}
	return tw.Flush()
}

// listAll prints what the server has.
func (t *caller) listAll(ctx context.Context) error {
	m, _, err := t.server.do(ctx, call{id: t.nextID(), method: spec.MethodDiscover, params: []byte("{}")})
	if err != nil {
		return fmt.Errorf("asking %s what it has: %w", t.name, err)
	}
	has := make(map[string]json.RawMessage)
	for _, g := range groups {
		if wire.Get(wire.Get(m.Result, "capabilities"), g.capability) == nil {
			continue
		}
		if has[spec.Array(g.method)], err = t.all(ctx, g.method, spec.Array(g.method)); err != nil {
			return fmt.Errorf("listing the %s of %s: %w", g.title, t.name, err)
		}
	}
	if t.asJSON {
		return printJSON(t.out, has)
	}
	return printGroups(t.out, has)
}

func printGroups(w io.Writer, has map[string]json.RawMessage) error {
	empty := true
	for _, g := range groups {
		heading := g.title + "\n"
		for item := range wire.Elements(has[spec.Array(g.method)]) {
			if _, err := fmt.Fprintf(w, "%s  %s\n", heading, printable(entry(item, g.member))); err != nil {
				return err
			}
			heading, empty = "", false
		}
	}
	if empty {
		_, err := fmt.Fprintln(w, "it has no tools, no prompts and no resources")
		return err
	}
	return nil
}
