package report

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A Group is one of the groups that would be served.
type Group struct {
	Name     string   `json:"name"`
	Endpoint string   `json:"endpoint"`
	Servers  []Member `json:"servers"`
	Clients  string   `json:"clients,omitempty"` // how they prove who they are; empty if they don't
}

// A Member is a server of a group.
type Member struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix,omitempty"` // of its names, without the underscores; empty without prefixes
}

// groupsOf returns what groups would be served.
func groupsOf(c *config.Config) (all []Group) {
	for i := range c.Groups {
		g := &c.Groups[i]
		one := Group{Name: g.Name, Endpoint: Endpoint(c, c.Listen, g.Name), Clients: proofs(c, c.AuthOfGroup(g), c.PublicURLOfGroup(g))}
		for _, name := range g.Members {
			m := Member{Name: name}
			if g.Prefix == "always" {
				m.Prefix = c.Server(name).NamePrefix()
			}
			one.Servers = append(one.Servers, m)
		}
		all = append(all, one)
	}
	return all
}

// Text returns the servers of the group on a line.
func (g *Group) Text() string {
	var all []string
	for _, m := range g.Servers {
		if m.Prefix == "" {
			all = append(all, m.Name)
		} else {
			all = append(all, m.Name+" as "+m.Prefix+names.Divider+"…")
		}
	}
	return strings.Join(all, ", ")
}

func printGroups(w io.Writer, groups []Group) {
	for i, g := range groups {
		if i == 0 {
			_, _ = output.Printf(w, "\nGROUP\tENDPOINT\tSERVERS\n") // its error comes with Flush
		}
		_, _ = output.Printf(w, "%s\t%s\t%s\n", g.Name, g.Endpoint, g.Text())
	}
}

// A GroupNames is what clients of a group see, and what they don't, policies aside.
type GroupNames struct {
	Group string            `json:"group"`
	Names []names.GroupName `json:"names"`
}

// Asker sends a server a request for a list, past what clients see of it.
type Asker = func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)

// NamesOfGroups returns what clients of all groups see. Servers that do not answer are left out.
func NamesOfGroups(ctx context.Context, c *config.Config, ask Asker) (all []GroupNames) {
	lists := make(map[string][]string) // own names by server and method
	for i := range c.Groups {
		g := &c.Groups[i]
		out := GroupNames{Group: g.Name, Names: []names.GroupName{}}
		naming := &names.Group{Bare: g.Prefix == "never", Max: int(g.NameMax), Prefer: g.Prefer}
		for _, kind := range []policy.Kind{policy.Tool, policy.Prompt, policy.Resource} {
			method := methodOf(kind)
			var found []names.GroupName
			for _, server := range g.Members {
				own, known := lists[server+method]
				if !known {
					own, _ = listed(method, func(params []byte) (json.RawMessage, error) { return ask(ctx, server, method, params) }) // States say that it is down
					lists[server+method] = own
				}
				found = append(found, namesOf(naming, c.Server(server), kind, own)...)
			}
			naming.Clash(kind, found)
			out.Names = append(out.Names, found...)
		}
		all = append(all, out)
	}
	return all
}

func methodOf(k policy.Kind) string {
	return map[policy.Kind]string{policy.Tool: spec.MethodToolsList, policy.Prompt: spec.MethodPromptsList, policy.Resource: spec.MethodResourcesList}[k]
}

// namesOf returns the names of what a member has, each by itself.
func namesOf(g *names.Group, s *config.Server, k policy.Kind, own []string) (all []names.GroupName) {
	shown, err := names.New(s.Names())
	if err != nil {
		return nil // it was checked
	}
	for _, name := range own {
		switch at, err := shown.Shown(k, name); {
		case err == names.ErrHidden:
			all = append(all, names.HiddenName(k, s.Name, name))
		case err != nil:
			all = append(all, names.GroupName{Kind: k.String(), Server: s.Name, Own: name, Hidden: err.Error()})
		default:
			all = append(all, g.Name(k, s.Name, s.NamePrefix(), name, at))
		}
	}
	return all
}

func printNames(w io.Writer, groups []GroupNames) {
	for _, g := range groups {
		_, _ = output.Printf(w, "\nGROUP %s\tKIND\tSERVER\tOWN NAME\n", g.Group) // its error comes with Flush
		for _, n := range g.Names {
			if n.Hidden == "" {
				_, _ = output.Printf(w, "%s\t%s\t%s\t%s\n", output.Escape(n.Name), n.Kind, n.Server, output.Escape(n.Own))
			}
		}
		for i, n := range slices.DeleteFunc(slices.Clone(g.Names), func(n names.GroupName) bool { return n.Hidden == "" }) {
			if i == 0 {
				_, _ = output.Printf(w, "\nHIDDEN IN %s\tKIND\tSERVER\tWHY\n", g.Group)
			}
			_, _ = output.Printf(w, "%s\t%s\t%s\t%s\n", output.Escape(n.Own), n.Kind, n.Server, output.Escape(n.Hidden))
		}
	}
}
