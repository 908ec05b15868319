package names

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A GroupName is a tool, prompt, resource or template of a member of a group, as clients of the
// group see it, policies aside.
type GroupName struct {
	Kind   string `json:"kind"`           // tool, prompt, resource or template
	Name   string `json:"name,omitempty"` // empty if clients don't see it
	Server string `json:"server"`
	Own    string `json:"own"`           // its name there
	Hidden string `json:"why,omitempty"` // why it has no name in the group; empty if it has
	Cut    bool   `json:"cut,omitempty"` // Name ends in a digest instead of the whole own name
}

// A Group says how a group names what its members have.
type Group struct {
	Bare   bool              // own names are shown, without a prefix
	Max    int               // length of the longest name of a tool or prompt, in bytes
	Prefer map[string]string // members' names, by the names that are theirs
}

// Name returns a thing of a member that is called own there and at by clients of the member's own
// endpoint. [Group.Clash] says then who has a name that several members have.
func (g *Group) Name(k policy.Kind, server, prefix, own, at string) GroupName {
	n := GroupName{Kind: k.String(), Server: server, Own: own, Name: at}
	if !g.Bare && k != policy.Resource {
		var plain bool
		n.Name, plain = InGroup(server, prefix, at, g.Max)
		n.Cut = !plain
	}
	return n
}

// HiddenName returns a thing of a member that its own configuration hides.
func HiddenName(k policy.Kind, server, own string) GroupName {
	return GroupName{Kind: k.String(), Server: server, Own: own, Hidden: fmt.Sprintf("%ss of %s hides it", k, server)}
}

// Clash takes names away that several members have: of a tool or prompt from all but the preferred
// one, of a resource from all but the first. found has one kind of things of all members, in their
// order.
func (g *Group) Clash(k policy.Kind, found []GroupName) {
	of := make(map[string][]int)
	for i := range found {
		if name := found[i].Name; name != "" {
			of[name] = append(of[name], i)
		}
	}
	for name, places := range of {
		var servers []string
		for _, at := range places {
			if s := found[at].Server; !slices.Contains(servers, s) {
				servers = append(servers, s)
			}
		}
		if len(servers) < 2 {
			continue
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
		for _, at := range places {
			n := &found[at]
			if n.Server == keeps {
				continue
			}
			n.Name, n.Hidden, n.Cut = "", why, false
			if k == policy.Resource {
				n.Hidden += n.Server
			}
		}
	}
}
