package report

import (
	"context"
	"encoding/json"
	"fmt"
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
	Group string      `json:"group"`
	Names []GroupName `json:"names"`
}

// A GroupName is a tool, prompt or resource of a member.
type GroupName struct {
	Kind   string `json:"kind"` // tool, prompt or resource
	Name   string `json:"name,omitempty"`
	Server string `json:"server"`
	Own    string `json:"own"`           // its name there
	Hidden string `json:"why,omitempty"` // why it has no name in the group; empty if it has
}

// Asker sends a server a request for a list, past what clients see of it.
type Asker = func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)

// NamesOfGroups returns what clients of all groups see. Servers that do not answer are left out.
func NamesOfGroups(ctx context.Context, c *config.Config, ask Asker) (all []GroupNames) {
	lists := make(map[string][]string) // own names by server and method
	for i := range c.Groups {
		g := &c.Groups[i]
		out := GroupNames{Group: g.Name, Names: []GroupName{}}
		for _, kind := range []policy.Kind{policy.Tool, policy.Prompt, policy.Resource} {
			method := methodOf(kind)
			var found []GroupName
			for _, server := range g.Members {
				own, known := lists[server+method]
				if !known {
					own, _ = listed(method, func(params []byte) (json.RawMessage, error) { return ask(ctx, server, method, params) }) // States say that it is down
					lists[server+method] = own
				}
				found = append(found, namesOf(g, c.Server(server), kind, own)...)
			}
			clash(g, kind, found)
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
func namesOf(g *config.Group, s *config.Server, k policy.Kind, own []string) (all []GroupName) {
	shown, err := names.New(s.Names())
	if err != nil {
		return nil // it was checked
	}
	for _, name := range own {
		one := GroupName{Kind: k.String(), Server: s.Name, Own: name}
		switch at, err := shown.Shown(k, name); {
		case err == names.ErrHidden:
			one.Hidden = fmt.Sprintf("%ss of %s hides it", k, s.Name)
		case err != nil:
			one.Hidden = err.Error()
		case g.Prefix == "never" || k == policy.Resource:
			one.Name = at
		default:
			one.Name, _ = names.InGroup(s.Name, s.NamePrefix(), at, int(g.NameMax))
		}
		all = append(all, one)
	}
	return all
}

// clash takes names away that several members have: of a tool or prompt from all but the preferred
// one, of a resource from all but the first.
func clash(g *config.Group, k policy.Kind, found []GroupName) {
	of := make(map[string][]int)
	for i := range found {
		if name := found[i].Name; name != "" {
			of[name] = append(of[name], i)
		}
	}
	for name, places := range of {
		if len(places) < 2 {
			continue
		}
		servers := make([]string, len(places))
		for i, at := range places {
			servers[i] = found[at].Server
		}
		keeps := g.Prefer[name]
		why := fmt.Sprintf("%s have it; say with prefer whose it is", strings.Join(servers, " and "))
		switch {
		case k == policy.Resource:
			keeps = servers[0]
			why = keeps + " has it, too, and is before " // the other
		case slices.Contains(servers, keeps):
			why = "prefer says that it is that of " + keeps
		}
		for i, at := range places {
			if servers[i] == keeps {
				continue
			}
			found[at].Name, found[at].Hidden = "", why
			if k == policy.Resource {
				found[at].Hidden += servers[i]
			}
		}
	}
}

func printNames(w io.Writer, groups []GroupNames) {
	for _, g := range groups {
		_, _ = output.Printf(w, "\nGROUP %s\tKIND\tSERVER\tOWN NAME\n", g.Group) // its error comes with Flush
		for _, n := range g.Names {
			if n.Hidden == "" {
				_, _ = output.Printf(w, "%s\t%s\t%s\t%s\n", output.Escape(n.Name), n.Kind, n.Server, output.Escape(n.Own))
			}
		}
		for i, n := range slices.DeleteFunc(slices.Clone(g.Names), func(n GroupName) bool { return n.Hidden == "" }) {
			if i == 0 {
				_, _ = output.Printf(w, "\nHIDDEN IN %s\tKIND\tSERVER\tWHY\n", g.Group)
			}
			_, _ = output.Printf(w, "%s\t%s\t%s\t%s\n", output.Escape(n.Own), n.Kind, n.Server, output.Escape(n.Hidden))
		}
	}
}
