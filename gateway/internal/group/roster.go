package group

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A roster is the members of a group, in its order. It does not change, but whom it finds does.
type roster struct {
	group   string
	members []MemberOptions
	names   []string // of members
	find    Find
}

func newRoster(o *Options) *roster {
	r := &roster{group: o.Name, members: o.Members, find: o.Find}
	for i := range o.Members {
		r.names = append(r.names, o.Members[i].Name)
	}
	return r
}

// A memberAt is a member and its place in the group.
type memberAt struct {
	index int
	MemberOptions
	Member // as it is served now; not nil
}

var errNotServed = errors.New("it is not served at the moment")

// at returns the member at a place, or an error if it is not served now.
func (r *roster) at(i int) (memberAt, error) {
	o := r.members[i]
	m := r.find(o.Name)
	if m == nil {
		return memberAt{}, r.away(o.Name, errNotServed)
	}
	return memberAt{i, o, m}, nil
}

// away returns the error of a request that needs a member that can't be asked.
func (r *roster) away(member string, why error) error {
	return mcp.RefuseForNow("server %q of group %q can't be asked: %v; try again later", member, r.group, why)
}

// place returns the place of a member; -1 if there is none of that name.
func (r *roster) place(name string) int { return slices.Index(r.names, name) }

// named returns the member of a name, or an error if there is none, or it is not served now.
func (r *roster) named(name string) (memberAt, error) {
	if i := r.place(name); i >= 0 {
		return r.at(i)
	}
	return memberAt{}, mcp.Refuse(spec.CodeInvalidParams, "group %q has no server %q any more", r.group, name)
}

func (r *roster) eraAt(i int) spec.Era {
	if m := r.find(r.names[i]); m != nil {
		return m.Era()
	}
	return spec.Unknown
}

// era returns that of all members; spec.Unknown if it is not known, or they differ.
func (r *roster) era() spec.Era {
	era := spec.Unknown
	for i := range r.names {
		m, err := r.at(i)
		switch {
		case err != nil || m.Era() == spec.Unknown, era != spec.Unknown && m.Era() != era:
			return spec.Unknown
		}
		era = m.Era()
	}
	return era
}

// err returns nil if a member could be reached or, if all are required, all could be.
func (r *roster) err(all bool) error {
	var starting, failed []string
	for i, name := range r.names {
		m, err := r.at(i)
		if err == nil {
			if err = m.Err(nil); err == nil && !all {
				return nil
			}
		}
		switch {
		case errors.Is(err, mcp.ErrStarting):
			starting = append(starting, name)
		case err != nil:
			failed = append(failed, fmt.Sprintf("server %q: %s", name, mcp.WireError(err).Message))
		}
	}
	switch {
	case len(starting) > 0:
		return fmt.Errorf("%w: %s", mcp.ErrStarting, strings.Join(starting, ", "))
	case len(failed) > 0:
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}

// namesAt returns the names of members at places.
func (r *roster) namesAt(places []int) (names []string) {
	for _, i := range places {
		names = append(names, r.names[i])
	}
	return names
}

// quoted returns the names of members.
func (r *roster) quoted(places []int) string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i] = strconv.Quote(r.names[place])
	}
	return strings.Join(names, ", ")
}

// everywhere returns the beginnings of the lists of all members.
func (r *roster) everywhere() []place {
	places := make([]place, len(r.names))
	for i := range places {
		places[i].member = i
	}
	return places
}

// each calls do for the members that are served now.
func (r *roster) each(do func(Member)) {
	for i := range r.names {
		if m, err := r.at(i); err == nil {
			do(m)
		}
	}
}
