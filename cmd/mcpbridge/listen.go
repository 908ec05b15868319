package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func newListenCommand(p process) *cobra.Command {
	a := &asking{target: target{process: p}}
	t := &a.target
	var want mcp.Filter
	var id string
	cmd := &cobra.Command{
		Use:   "listen URL | NAME -c FILE | -- COMMAND ARGS...",
		Short: "Follow the changes of a server, a line for each",
		Long: `Opens a subscriptions/listen stream and prints the acknowledgment, then a line
for each change as it comes. A line is a cue to read again; it carries no
content. The server is named as for call, and may be of any revision.

Exit codes: 0 the server ended the stream, or you did; 1 it was refused;
3 it broke off, which is a reason to listen again.`,
		Example: `  mcpbridge listen http://127.0.0.1:2526/mcp/notebook --resource note://todo
  mcpbridge listen http://127.0.0.1:2526/mcp/notebook --tools --prompts --json
  mcpbridge listen -c config.yaml files --resources`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.read(cmd, args); err != nil {
				return err
			}
			f := &follower{want: want, out: cmd.OutOrStdout(), asJSON: a.asJSON, now: time.Now}
			return f.run(cmd.Context(), t, parseID(id))
		},
		ValidArgsFunction: a.complete("", ""),
	}
	fs := cmd.Flags()
	t.flags(fs)
	fs.BoolVar(&want.Tools, "tools", false, "follow the list of tools")
	fs.BoolVar(&want.Prompts, "prompts", false, "follow the list of prompts")
	fs.BoolVar(&want.Resources, "resources", false, "follow the list of resources")
	fs.StringArrayVar(&want.URIs, "resource", nil, "follow this resource; may be repeated")
	fs.StringVar(&id, "id", "1", "id of the request, which comes back on every frame")
	fs.BoolVar(&a.asJSON, "json", false, "print each JSON-RPC message as it comes")
	return cmd
}

// parseID reads an id as JSON if it is a JSON id, and else as a string.
func parseID(text string) wire.ID {
	if wire.Check([]byte(text), 0) == nil {
		if id, err := wire.ParseID([]byte(text)); err == nil {
			return id
		}
	}
	return wire.StringID(text)
}

// A follower prints one listen stream.
type follower struct {
	want   mcp.Filter
	out    io.Writer
	asJSON bool
	now    func() time.Time
}

func (f *follower) run(ctx context.Context, t *target, id wire.ID) error {
	switch {
	case len(t.words) > 0:
		return usageError("%q is too much; write --resource %[1]s to follow a resource", t.words[0])
	case len(wanted(f.want)) == 0:
		return usageError("nothing to listen to; add --tools, --prompts, --resources or --resource URI")
	}
	server, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer server.close()
	_, raw, err := server.do(ctx, call{id: id, method: spec.MethodListen, params: listenParams(f.want), notify: f.frame})
	switch {
	case ctx.Err() != nil:
		return f.say("stopped listening")
	case errors.Is(err, errLost):
		return &exitError{exitLost, fmt.Errorf("%w; listen again, and read again what you follow", err)}
	case err != nil:
		return fmt.Errorf("listening to %s: %w", t.name(), err)
	}
	return f.end(raw)
}

// listenParams writes the filter as the wire has it.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Notification Filter.
func listenParams(want mcp.Filter) []byte {
	var edits []wire.Edit
	for _, k := range []struct {
		name string
		on   bool
	}{{"toolsListChanged", want.Tools}, {"promptsListChanged", want.Prompts}, {"resourcesListChanged", want.Resources}} {
		if k.on {
			edits = append(edits, wire.Edit{Name: k.name, Value: []byte("true")})
		}
	}
	if len(want.URIs) > 0 {
		list := []byte("[")
		for i, uri := range want.URIs {
			if i > 0 {
				list = append(list, ',')
			}
			list = wire.AppendString(list, uri)
		}
		edits = append(edits, wire.Edit{Name: "resourceSubscriptions", Value: append(list, ']')})
	}
	filter := wire.AppendEdited(nil, nil, edits...)
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "notifications", Value: filter})
}

// wanted names what a filter asks for, as people read it.
func wanted(f mcp.Filter) []string {
	var out []string
	for _, k := range []struct {
		name string
		on   bool
	}{{"tools", f.Tools}, {"prompts", f.Prompts}, {"resources", f.Resources}} {
		if k.on {
			out = append(out, k.name)
		}
	}
	return append(out, f.URIs...)
}

// frame prints one message of the stream.
func (f *follower) frame(m *wire.Message, raw []byte) error {
	switch {
	case f.asJSON:
		_, err := fmt.Fprintf(f.out, "%s\n", raw)
		return err
	case m.Method == spec.NotifyAcknowledged:
		return f.acknowledge(wire.Get(m.Params, "notifications"))
	case m.Method == spec.NotifyResourceUpdated:
		uri, _ := wire.GetString(m.Params, "uri")
		return f.say("changed: " + uri)
	}
	what := strings.TrimSuffix(strings.TrimPrefix(m.Method, spec.MethodNotificationsPrefix), "/list_changed")
	return f.say("changed: the list of " + what)
}

// acknowledge says what will be heard of, and what was asked for in vain.
func (f *follower) acknowledge(filter []byte) error {
	isTrue := func(name string) bool { return string(wire.Get(filter, name)) == "true" }
	honored := mcp.Filter{Tools: isTrue("toolsListChanged"), Prompts: isTrue("promptsListChanged"), Resources: isTrue("resourcesListChanged")}
	honored.URIs = wire.Strings(wire.Get(filter, "resourceSubscriptions"))
	granted := wanted(honored)
	line := "acknowledged: " + strings.Join(granted, ", ")
	if len(granted) == 0 {
		line = "acknowledged, but for nothing: no change will be reported"
	}
	missing := slices.DeleteFunc(wanted(f.want), func(w string) bool { return slices.Contains(granted, w) })
	if len(missing) > 0 {
		line += "; the server does not report " + strings.Join(missing, ", ")
	}
	return f.say(line)
}

// end prints the listen request's result: the server ended the stream on
// purpose.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure.
func (f *follower) end(raw []byte) error {
	if f.asJSON {
		_, err := fmt.Fprintf(f.out, "%s\n", raw)
		return err
	}
	return f.say("the server ended the stream; listen again to go on following")
}

func (f *follower) say(line string) error {
	if f.asJSON {
		return nil
	}
	_, err := fmt.Fprintf(f.out, "%s %s\n", f.now().Format(time.TimeOnly), printable(line))
	return err
}
