package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func newCallCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call URL [TOOL [key=value]...]",
		Short: "Call a tool, or list the tools",
		Long: `Calls a tool and prints what it answers; progress goes to stderr. Without TOOL
it lists the tools.

A value is read as the tool's schema has it: key=5 is a number where a number
is wanted and text where text is. key:=JSON gives JSON whatever the schema says.

Exit codes: 0 the tool succeeded; 1 it failed, or could not be called.`,
		Example: `  mcpbridge call http://127.0.0.1:2526/mcp/notebook
  mcpbridge call http://127.0.0.1:2526/mcp/notebook edit_note name=todo text="buy milk"
  mcpbridge call http://127.0.0.1:2526/mcp/files read_multiple_files paths:='["a", "b"]' --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("want the endpoint's URL; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newClient(args[0])
			if err != nil {
				return err
			}
			defer c.close()
			t := &caller{client: c, out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr(), asJSON: asJSON}
			if len(args) == 1 {
				return t.list(cmd.Context())
			}
			return t.call(cmd.Context(), args[1], args[2:])
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON-RPC response as it came, or the tools as JSON")
	return cmd
}

// A caller calls one tool for a person.
type caller struct {
	client        *client
	out, progress io.Writer
	asJSON        bool
	lastID        int64
}

func (t *caller) nextID() wire.ID {
	t.lastID++
	return wire.NumberID(t.lastID)
}

// list prints the tools with the first line of what they say of themselves.
func (t *caller) list(ctx context.Context) error {
	tools, err := t.tools(ctx)
	if err != nil {
		return err
	}
	if t.asJSON {
		_, err := fmt.Fprintf(t.out, "%s\n", tools)
		return err
	}
	for tool := range wire.Elements(tools) {
		name, _ := wire.GetString(tool, "name")
		text, _ := wire.GetString(tool, "description")
		line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		lines := append([]string{fmt.Sprintf("%-24s %s", name, line)}, arguments(tool)...)
		if _, err := fmt.Fprintln(t.out, printable(strings.Join(lines, "\n    "))); err != nil {
			return err
		}
	}
	return nil
}

// tools returns all tools as one JSON array, page after page.
func (t *caller) tools(ctx context.Context) ([]byte, error) {
	all := []byte("[")
	var cursor []byte
	for {
		params := wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
		m, _, err := t.client.do(ctx, call{id: t.nextID(), method: spec.MethodToolsList, params: params})
		if err != nil {
			return nil, fmt.Errorf("listing the tools of %s: %w", t.client.url, err)
		}
		for tool := range wire.Elements(wire.Get(m.Result, "tools")) {
			if len(all) > 1 {
				all = append(all, ',')
			}
			all = append(all, tool...)
		}
		next := wire.Get(m.Result, "nextCursor")
		if len(next) == 0 || wire.IsNull(next) || string(next) == string(cursor) {
			return append(all, ']'), nil
		}
		cursor = next
	}
}

func (t *caller) call(ctx context.Context, name string, words []string) error {
	tools, err := t.tools(ctx)
	if err != nil {
		return err
	}
	tool, err := find(tools, name, t.client.url)
	if err != nil {
		return err
	}
	schema := wire.Get(tool, "inputSchema")
	args, err := readArguments(name, schema, words)
	if err != nil {
		return err
	}
	id := t.nextID()
	m, raw, err := t.client.do(ctx, call{
		id: id, method: spec.MethodToolsCall, name: name, header: paramHeaders(schema, args),
		params: wire.AppendEdited(nil, nil, wire.Edit{Name: "name", Value: wire.Quote(name)}, wire.Edit{Name: "arguments", Value: args}),
		meta:   []wire.Edit{{Name: spec.MetaProgressToken, Value: id.Append(nil)}},
		notify: t.notified,
	})
	if t.asJSON && raw != nil {
		if _, werr := fmt.Fprintf(t.out, "%s\n", raw); werr != nil {
			return werr
		}
	}
	if err != nil {
		return fmt.Errorf("calling %s at %s: %w", name, t.client.url, err)
	}
	return t.answer(name, m.Result)
}

// find returns the tool called name, or an error that says which there are.
func find(tools []byte, name, url string) ([]byte, error) {
	var names []string
	for tool := range wire.Elements(tools) {
		n, _ := wire.GetString(tool, "name")
		if n == name {
			return tool, nil
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no tools", url)
	}
	return nil, fmt.Errorf("%s has no tool %q; there are: %s", url, name, strings.Join(names, ", "))
}

// notified prints progress.
func (t *caller) notified(m *wire.Message, _ []byte) error {
	if m.Method != spec.NotifyProgress {
		return nil
	}
	line := "progress " + string(wire.Get(m.Params, "progress"))
	if total := wire.Get(m.Params, "total"); total != nil {
		line += "/" + string(total)
	}
	if text, ok := wire.GetString(m.Params, "message"); ok {
		line += " " + text
	}
	_, err := fmt.Fprintln(t.progress, printable(line))
	return err
}

// answer prints a tool's result, or makes an error of it.
func (t *caller) answer(name string, result []byte) error {
	text := contentText(result)
	switch kind, _ := wire.GetString(result, "resultType"); {
	case kind == spec.ResultInputRequired:
		return fmt.Errorf("%s asks questions, which call can't answer; use a client that can", name)
	case string(wire.Get(result, "isError")) == "true":
		return fmt.Errorf("%s failed: %s", name, text)
	case t.asJSON:
		return nil
	}
	_, err := fmt.Fprintln(t.out, printable(text))
	return err
}
