package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// A follower prints one listen stream.
type follower struct {
	*Printer
	want mcp.Filter
}

// Follow prints the changes in a filter, until the server ends the stream or ctx ends. The
// error wraps [ErrLost] if the stream broke. id is the id of the request.
func (p *Printer) Follow(ctx context.Context, id wire.ID, want mcp.Filter) error {
	f := &follower{p, want}
	params := protocol.ListenParams(want)
	m, err := p.Server.do(ctx, call{id: id, method: spec.MethodListen, params: params, notify: f.frame})
	var refused *RefusedError
	switch {
	case errors.As(context.Cause(ctx), &refused):
		return refused
	case ctx.Err() != nil:
		return f.say("stopped listening")
	case errors.Is(err, ErrLost):
		return err
	case err != nil:
		return fmt.Errorf("listening to %s: %w", p.Name, err)
	}
	return f.end(m.Text)
}

// wanted returns the topics of a filter for people.
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
func (f *follower) frame(m *wire.Message) error {
	switch {
	case f.AsJSON:
		return output.Line(f.Out, m.Text)
	case m.Method == spec.NotifyAcknowledged:
		return f.acknowledge(wire.Get(m.Params, "notifications"))
	case m.Method == spec.NotifyResourceUpdated:
		uri, _ := wire.GetString(m.Params, "uri")
		return f.say("changed: " + uri)
	}
	what := strings.TrimSuffix(strings.TrimPrefix(m.Method, spec.MethodNotificationsPrefix), "/list_changed")
	return f.say("changed: the list of " + what)
}

// acknowledge prints which changes the server will report, and which not.
func (f *follower) acknowledge(filter []byte) error {
	honored, _ := protocol.ReadFilter(filter) // an invalid one honors nothing
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

// end prints the end of the stream: the server has ended it gracefully.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure.
func (f *follower) end(raw []byte) error {
	if f.AsJSON {
		return output.Line(f.Out, raw)
	}
	return f.say("the server ended the stream; listen again to go on following")
}

// say prints a line with its time, unless JSON is wanted.
func (f *follower) say(line string) error {
	if f.AsJSON {
		return nil
	}
	_, err := output.Printf(f.Out, "%s %s\n", f.Now().Format(time.TimeOnly), line)
	return err
}

// ParseID reads an id as JSON if it is a JSON id, and else as a string.
func ParseID(text string) wire.ID {
	if wire.Check([]byte(text), 0) == nil {
		if id, err := wire.ParseID([]byte(text)); err == nil {
			return id
		}
	}
	return wire.StringID(text)
}
