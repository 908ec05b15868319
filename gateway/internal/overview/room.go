package overview

import (
	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A Member is what a gateway knows of a server that is a member of a group.
type Member struct {
	Told  status.Server
	Names *names.Map // what clients of its own endpoint see
	// Hidden returns the own names of what Names has hidden in lists of a method.
	Hidden func(method string) []string
}

// Room returns a group as it is known, which asks nobody. member returns a member of a name; nil
// if that is not served.
func Room(told status.Server, known *group.Known, member func(name string) *Member, secrets *redact.Redactor) *status.Room {
	r := &room{known: known, naming: names.Group{Bare: known.Bare, Max: known.NameMax, Prefer: known.Prefer}, secrets: secrets}
	r.out = status.Room{
		Name: told.Name, State: told.State, Prefix: "always", NameMax: known.NameMax, OnMissing: "leave_out",
		Patience: known.Patience.String(), StartPatience: known.StartPatience.String(), Members: []status.RoomMember{},
	}
	if known.Bare {
		r.out.Prefix = "never"
	}
	if known.Require {
		r.out.OnMissing = "fail"
	}
	for _, m := range known.Members {
		of := member(m.Name)
		r.members = append(r.members, of)
		r.out.Members = append(r.out.Members, r.about(m, of))
	}
	for _, l := range roomLists {
		r.list(l.method, l.kind, l.given)
	}
	return &r.out
}

// A room is a Room that is being made.
type room struct {
	known   *group.Known
	members []*Member // nil for those that are not served
	naming  names.Group
	secrets *redact.Redactor
	out     status.Room
}

// roomLists are the lists of a member.
var roomLists = []struct {
	method string
	kind   policy.Kind
	given  func(*status.RoomMember) *status.Given
}{
	{spec.MethodToolsList, policy.Tool, func(m *status.RoomMember) *status.Given { return &m.Tools }},
	{spec.MethodPromptsList, policy.Prompt, func(m *status.RoomMember) *status.Given { return &m.Prompts }},
	{spec.MethodResourcesList, policy.Resource, func(m *status.RoomMember) *status.Given { return &m.Resources }},
	{spec.MethodResourcesTemplates, policy.Resource, func(m *status.RoomMember) *status.Given { return &m.Templates }},
}

// about returns what is known of a member, but for what it gives.
func (r *room) about(m group.MemberOptions, of *Member) status.RoomMember {
	out := status.RoomMember{Name: m.Name, Prefix: m.Prefix, State: "gone", Era: spec.Unknown.String(), Names: []status.RoomName{}}
	if r.known.Bare {
		out.Prefix = ""
	}
	if of != nil {
		t := &of.Told
		out.State, out.Error, out.Since, out.Failed = t.State, r.secrets.String(t.Error), t.Since, t.LastErrorTime
		out.Era, out.Revision = t.Era, t.Revision
	}
	return out
}

// list adds what all members have in one list.
func (r *room) list(method string, k policy.Kind, given func(*status.RoomMember) *status.Given) {
	var found []names.GroupName
	var places []int // of the members
	for i, lists := range r.known.Lists {
		l, listed := lists[method]
		g := given(&r.out.Members[i])
		g.Known, g.More = listed, l.More
		found = append(found, r.listed(i, k, l.Names)...)
		if of := r.members[i]; of != nil {
			for _, own := range of.Hidden(method) {
				found = append(found, names.HiddenName(k, of.Told.Name, own))
			}
		}
		for len(places) < len(found) {
			places = append(places, i)
		}
	}
	r.naming.Clash(k, found)
	for i := range found {
		m := &r.out.Members[places[i]]
		r.add(m, given(m), method, &found[i])
	}
}

// listed returns what a member has listed, each by itself.
func (r *room) listed(i int, k policy.Kind, shown []string) (all []names.GroupName) {
	m := &r.known.Members[i]
	for _, at := range shown {
		own := at
		if of := r.members[i]; of != nil {
			if op, renamed, _ := of.Names.Own(policy.Use("", k, at)); renamed {
				_, own = op.About()
			}
		}
		all = append(all, r.naming.Name(k, m.Name, m.Prefix, own, at))
	}
	return all
}

func (r *room) add(m *status.RoomMember, g *status.Given, method string, n *names.GroupName) {
	if n.Hidden == "" {
		g.Shown++
	} else {
		g.Hidden++
	}
	if len(m.Names) == status.MaxRoomNames {
		m.Left++
		return
	}
	kind := n.Kind
	if method == spec.MethodResourcesTemplates {
		kind = "template"
	}
	m.Names = append(m.Names, status.RoomName{
		Kind: kind, Name: r.secrets.String(n.Name), Own: r.secrets.String(n.Own), Cut: n.Cut, Why: r.secrets.String(n.Hidden),
	})
}
