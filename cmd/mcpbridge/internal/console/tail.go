package console

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
)

// TailOptions say what Tail prints.
type TailOptions struct {
	Server string // events of this one; empty for all
	Filter string // events with this in any of their texts, whatever the case
	JSON   bool   // each event as JSON, on a line
}

// Tail prints what passes, a line for each, until ctx ends.
func (a *Admin) Tail(ctx context.Context, w io.Writer, o TailOptions) error {
	return a.Follow(ctx, func(f live.Frame) error {
		for i := range f.Events {
			if err := o.print(w, &f.Events[i]); err != nil {
				return err
			}
		}
		if n := f.Skipped + f.Missed; n > 0 && !o.JSON {
			_, err := output.Printf(w, "… %d more are not shown: too many per second\n", n)
			return err
		}
		return nil
	})
}

func (o *TailOptions) print(w io.Writer, e *live.Event) error {
	if !o.wants(e) {
		return nil
	}
	if o.JSON {
		return output.JSONLine(w, e)
	}
	_, err := output.Printf(w, "%s\n", line(e))
	return err
}

func (o *TailOptions) wants(e *live.Event) bool {
	if o.Server != "" && o.Server != e.Server {
		return false
	}
	all := strings.Join([]string{e.Server, e.Member, e.Own, e.Method, e.Name, e.Client, e.Era, e.Principal, e.Session, e.Outcome, e.Step, e.Error}, "\n")
	return strings.Contains(strings.ToLower(all), strings.ToLower(o.Filter))
}

// there says which member of a group has served a call, and its own name there; empty for none.
func there(e *live.Event) string {
	switch {
	case e.Member == "":
		return ""
	case e.Own == "":
		return "at " + e.Member
	}
	return "at " + e.Member + " as " + e.Own
}

// line returns an event as people read it. What clients and servers say can't steer the
// terminal.
func line(e *live.Event) string {
	ending := ""
	switch e.Type {
	case "call":
		ending = fmt.Sprintf("%s %.2fms", e.Outcome, e.Millis)
	case "change":
		ending = fmt.Sprintf("%d followers", e.Followers)
	case "step":
		ending = strings.ReplaceAll(e.Step, "_", " ")
	}
	words := []string{e.Time.Local().Format("15:04:05.000"), fmt.Sprintf("%-6s", e.Type), fmt.Sprintf("%-12s", e.Server)}
	for _, text := range []string{e.Method, e.Name, there(e), ending, e.Client, e.Era, e.Principal, e.Error} {
		if text != "" {
			words = append(words, text)
		}
	}
	return output.Escape(strings.Join(words, "  "))
}
