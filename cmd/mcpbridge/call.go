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

func newCallCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "call URL | NAME -c FILE [TOOL [key=value]...]\n  mcpbridge call [TOOL [key=value]...] -- COMMAND ARGS...",
		Short: "Call a tool, or list the tools",
		Long: `Calls a tool and prints what it answers; progress goes to stderr. Without TOOL
it lists the tools. The server is a URL, of a server or of an endpoint of
mcpbridge, the NAME of one in a file, or a command, which is started for this one
call. It may be of any revision.

A value is read as the tool's schema has it: key=5 is a number where a number
is wanted and text where text is. key:=JSON gives JSON whatever the schema says.

Exit codes: 0 the tool succeeded; 1 it failed, or could not be called.`,
		Example: `  mcpbridge call http://127.0.0.1:2526/mcp/notebook
  mcpbridge call http://127.0.0.1:2526/mcp/notebook edit_note name=todo text="buy milk"
  mcpbridge call https://docs.example.com/mcp search query=x -H "Authorization: Bearer $DOCS_TOKEN"
  mcpbridge call -c config.yaml files read_multiple_files paths:='["a", "b"]' --json
  mcpbridge call list_allowed_directories -- npx -y @modelcontextprotocol/server-filesystem ~/notes`,
		RunE: a.command(0, "", func(ctx context.Context, t *caller, words []string) error {
			if len(words) == 0 {
				return t.list(ctx)
			}
			return t.call(ctx, words[0], words[1:])
		}),
		ValidArgsFunction: a.complete(spec.MethodToolsList, "name"),
	}
	a.addFlags(cmd, "print the JSON-RPC response as it came, or the tools as JSON")
	return cmd
}

// An asking is one of the commands that ask a server something and print its answer.
type asking struct {
	target
	asJSON bool
}

func (a *asking) addFlags(cmd *cobra.Command, asJSON string) {
	a.flags(cmd.Flags())
	cmd.Flags().BoolVar(&a.asJSON, "json", false, asJSON)
}

// command returns what such a command runs. It wants a number of words beside the
// server, which usage describes.
func (a *asking) command(words int, usage string, ask func(context.Context, *caller, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.read(cmd, args); err != nil {
			return err
		}
		if len(a.words) < words {
			return usageError("%s; see what there is with mcpbridge ls", usage)
		}
		server, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		defer server.close()
		t := &caller{server: server, name: a.name(), out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr(), asJSON: a.asJSON}
		return ask(cmd.Context(), t, a.words)
	}
}

// A caller asks one server for a person.
type caller struct {
	server        *client
	name          string // the server, as the person named it
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
		lines := append([]string{entry(tool, "name")}, arguments(tool)...)
		if _, err := fmt.Fprintln(t.out, printable(strings.Join(lines, "\n    "))); err != nil {
			return err
		}
	}
	return nil
}

// entry is the name of a thing that a server lists, and the first line of what is said
// of it.
func entry(item []byte, member string) string {
	name, _ := wire.GetString(item, member)
	text, _ := wire.GetString(item, "description")
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimRight(fmt.Sprintf("%-24s %s", name, line), " ")
}

// tools returns all tools as one JSON array.
func (t *caller) tools(ctx context.Context) ([]byte, error) {
	all, err := t.all(ctx, spec.MethodToolsList, "tools")
	if err != nil {
		return nil, fmt.Errorf("listing the tools of %s: %w", t.name, err)
	}
	return all, nil
}

// all returns what a method lists as one JSON array, page after page.
func (t *caller) all(ctx context.Context, method, member string) ([]byte, error) {
	all := []byte("[")
	var cursor []byte
	for {
		params := wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
		m, _, err := t.server.do(ctx, call{id: t.nextID(), method: method, params: params})
		if err != nil {
			return nil, err
		}
		for item := range wire.Elements(wire.Get(m.Result, member)) {
			if len(all) > 1 {
				all = append(all, ',')
			}
			all = append(all, item...)
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
	tool, err := find(tools, name, t.name)
	if err != nil {
		return err
	}
	schema := wire.Get(tool, "inputSchema")
	args, err := readArguments(name, schema, words)
	if err != nil {
		return err
	}
	id := t.nextID()
	result, err := t.do(ctx, call{
		id: id, method: spec.MethodToolsCall, name: name, header: paramHeaders(schema, args),
		params: withArguments(name, args),
		meta:   []wire.Edit{{Name: spec.MetaProgressToken, Value: id.Append(nil)}},
	})
	if err != nil {
		return fmt.Errorf("calling %s at %s: %w", name, t.name, err)
	}
	return t.answer(name, result)
}

// withArguments returns the params of a call of something that has a name and arguments.
func withArguments(name string, args []byte) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "name", Value: wire.Quote(name)}, wire.Edit{Name: "arguments", Value: args})
}

// do returns the result of a call, and prints its response if JSON is wanted.
func (t *caller) do(ctx context.Context, q call) ([]byte, error) {
	q.notify = t.notified
	m, raw, err := t.server.do(ctx, q)
	if t.asJSON && raw != nil {
		if _, werr := fmt.Fprintf(t.out, "%s\n", raw); werr != nil {
			return nil, werr
		}
	}
	if err != nil {
		return nil, err
	}
	return m.Result, nil
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
	}
	return t.print(text)
}
