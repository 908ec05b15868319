package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Shown says what clients see of the tools, prompts or resources of a server, where that is
// not all of them as they are.
type Shown struct {
	Of       string            `json:"of"` // tools, prompts or resources
	Allow    []string          `json:"allow,omitempty"`
	Deny     []string          `json:"deny,omitempty"`
	Rename   map[string]string `json:"rename,omitempty"`
	Describe map[string]string `json:"describe,omitempty"`
}

// shownOf returns what clients see of a server.
func shownOf(s *config.Server) (all []Shown) {
	o := s.Names()
	for _, part := range []struct {
		of string
		p  names.Part
	}{{"tools", o.Tools}, {"prompts", o.Prompts}, {"resources", o.Resources}} {
		if p := part.p; !p.IsZero() {
			all = append(all, Shown{part.of, p.Allow, p.Deny, p.Rename, p.Describe})
		}
	}
	return all
}

// String says it on a line.
func (s *Shown) String() string {
	which := "all " + s.Of
	if len(s.Allow) > 0 {
		which = s.Of + " " + strings.Join(s.Allow, ", ")
	}
	if len(s.Deny) > 0 {
		which += " without " + strings.Join(s.Deny, ", ")
	}
	parts := []string{which}
	for _, own := range slices.Sorted(maps.Keys(s.Rename)) {
		parts = append(parts, own+" as "+s.Rename[own])
	}
	if len(s.Describe) > 0 {
		parts = append(parts, "other descriptions of "+strings.Join(slices.Sorted(maps.Keys(s.Describe)), ", "))
	}
	return strings.Join(parts, "; ")
}

func printShown(w io.Writer, servers []Served) {
	some := false
	for _, server := range servers {
		for _, shown := range server.Shown {
			if !some {
				_, _ = output.Printf(w, "\nSERVER\tCLIENTS SEE OF IT\n") // its error comes with Flush
			}
			some = true
			_, _ = output.Printf(w, "%s\t%s\n", server.Name, shown.String())
		}
	}
}

// maxPages bounds the pages of a list that are looked at.
const maxPages = 100

// Unmatched returns what of the keys tools and prompts of a server is about nothing that it has,
// or would give two things one name. ask sends it a request, past those keys.
func Unmatched(ctx context.Context, c *config.Config, server string, ask Asker) (found []string) {
	s := c.Server(server)
	if s == nil {
		return nil
	}
	o := s.Names()
	for _, of := range []struct {
		kind   policy.Kind
		method string
		used   bool
	}{
		{policy.Tool, spec.MethodToolsList, !o.Tools.IsZero()},
		{policy.Prompt, spec.MethodPromptsList, !o.Prompts.IsZero()},
	} {
		if !of.used {
			continue
		}
		own, err := listed(of.method, func(params []byte) (json.RawMessage, error) { return ask(ctx, server, of.method, params) })
		if err != nil {
			found = append(found, fmt.Sprintf("%s: %v", of.method, err))
			continue
		}
		found = append(found, o.Compare(of.kind, own)...)
	}
	return found
}

// listed returns the names in a list; none if the server has no such list.
func listed(method string, ask func(params []byte) (json.RawMessage, error)) (all []string, err error) {
	params := []byte("{}")
	for range maxPages {
		page, err := ask(params)
		if mcp.HasCode(err, spec.CodeMethodNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		for item := range wire.Elements(wire.Get(page, spec.Array(method))) {
			member := "name"
			if method == spec.MethodResourcesList {
				member = "uri"
			}
			if name, ok := wire.GetString(item, member); ok {
				all = append(all, name)
			}
		}
		cursor := wire.Get(page, "nextCursor")
		if cursor == nil || wire.IsNull(cursor) {
			break
		}
		params = wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
	}
	return all, nil
}
