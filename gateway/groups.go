package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/remember"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A groupBuild is what a build does for one group. To the gateway it is a server, of which Front
// has what a server has, too.
type groupBuild struct {
	*GroupOptions
	front serverBuild
}

// groupParts are what a Gateway has of one group.
type groupParts struct {
	*serverParts
	members group.Options
}

func (b *build) ofGroup(g *GroupOptions) groupBuild {
	return groupBuild{g, b.of(&ServerOptions{
		Name: g.Name, Auth: g.Auth, PublicURL: g.PublicURL, Policy: g.Policy, Rates: g.Rates, ForwardClientInfo: b.forwardsClientInfo(g),
	})}
}

// forwardsClientInfo reports whether a member is told the names of clients.
func (b *build) forwardsClientInfo(g *GroupOptions) bool {
	return slices.ContainsFunc(g.Members, func(name string) bool {
		s := b.server(name)
		if s == nil {
			return false
		}
		of := b.of(s)
		return of.set.ForwardsClientInfo()
	})
}

// server returns the options of a server; nil if there is none.
func (b *build) server(name string) *ServerOptions {
	at := slices.IndexFunc(b.opts.Servers, func(s ServerOptions) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &b.opts.Servers[at]
}

// addGroups makes all groups. Those that are as before go on; former is nil if there is none.
func (b *build) addGroups(former *current) error {
	for i := range b.opts.Groups {
		g := b.ofGroup(&b.opts.Groups[i])
		p, err := g.keepOrMake(former)
		if err != nil {
			return fmt.Errorf("mcpbridge: group %q: %w", g.Name, err)
		}
		b.groups = append(b.groups, p)
	}
	return nil
}

// keepOrMake returns the parts of a group.
func (g groupBuild) keepOrMake(former *current) (*groupParts, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	b, identity := g.front.b, g.front.identity()
	members := g.members()
	if was := former.findGroup(g.Name); was != nil && b.keepsCommon && was.identity.same(identity) {
		p := &groupParts{was.serverParts, members}
		b.kept[p.serverParts] = true
		return p, checkTokens(g.Auth)
	}
	p := &serverParts{common: b.common, identity: identity}
	p.quirks = quirks.New(quirks.Options{Server: g.Name, Count: b.metrics.Quirk, Logger: b.opts.Logger})
	return &groupParts{p, members}, nil
}

// check reports the first fault of a group that nothing below would find.
func (g groupBuild) check() error {
	b := g.front.b
	if len(g.Members) == 0 {
		return errors.New("want Members")
	}
	if b.server(g.Name) != nil {
		return errors.New("a server has that name, too; want another one")
	}
	for _, name := range g.Members {
		s := b.server(name)
		switch {
		case s == nil && slices.ContainsFunc(b.opts.Groups, func(o GroupOptions) bool { return o.Name == name }):
			return fmt.Errorf("%q is a group, and groups have servers alone", name)
		case s == nil:
			return fmt.Errorf("there is no server %q", name)
		}
		if err := g.checkMember(s); err != nil {
			return err
		}
	}
	for name, member := range g.Prefer {
		if !slices.Contains(g.Members, member) {
			return fmt.Errorf("want members in Prefer, and it has %q for %q, which is none", member, name)
		}
	}
	return nil
}

// checkMember refuses a member whose clients are others than those of the group, or whose server
// would be sent what they prove themselves with.
func (g groupBuild) checkMember(s *ServerOptions) error {
	b := g.front.b
	clients := b.authOf(g.front.ServerOptions)
	switch a := s.UpstreamAuth; {
	case !sameClients(b.authOf(s), clients):
		return fmt.Errorf("server %q has another Auth: the group would be a way around it", s.Name)
	case a != nil && a.Passthrough:
		return fmt.Errorf("server %q is sent the caller's own token, which others of the group must not get; want UpstreamAuth without Passthrough", s.Name)
	case a != nil && a.TokenExchange != nil && b.opts.Authenticator == nil && b.opts.hooks.Caller == "" && (clients == nil || clients.JWT == nil):
		return fmt.Errorf("server %q exchanges the tokens of callers, and clients of the group have none; want Auth with a JWT", s.Name)
	}
	return nil
}

// sameClients reports whether two ways to prove who one is are the same. None, and one without
// fields, are, too.
func sameClients(a, b *Auth) bool {
	none := &Auth{}
	return reflect.DeepEqual(cmp.Or(a, none), cmp.Or(b, none))
}

// members returns what a group is made of.
func (g groupBuild) members() group.Options {
	o := group.Options{
		Bare: g.OwnNames, Prefer: g.Prefer, NameMax: g.MaxName, Patience: g.Patience, StartPatience: g.StartPatience, Require: g.RequireAll,
		Unattributed: g.Unattributed, Instructions: g.Instructions, ServerInfo: groupInfo(g.Name),
	}
	for _, name := range g.Members {
		s := g.front.b.server(name)
		o.Members = append(o.Members, group.MemberOptions{Name: name, Prefix: cmp.Or(s.Prefix, names.Prefix(name))})
	}
	return o
}

// groupInfo is what clients are told of a group.
//
// Spec: 2026-07-28, schema, Implementation.
func groupInfo(name string) []byte {
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "name", Value: wire.Quote("mcpbridge")}, wire.Edit{Name: "title", Value: wire.Quote(name)},
		wire.Edit{Name: "version", Value: wire.Quote(release.Version())})
}

// entry is what the gateway is told of a group. Its members are told of one that is kept if they
// are others than in former.
func (g groupBuild) entry(p *groupParts, former *current) router.ServerOptions {
	o := router.ServerOptions{
		Name: g.Name, Settings: g.front.set, Quirks: p.quirks, Access: p.access, Auth: p.auth, PublicURL: g.front.publicURL(),
		Kept: g.front.b.kept[p.serverParts], Ended: p.end,
	}
	if was := former.findGroup(g.Name); !o.Kept || !reflect.DeepEqual(was.members, p.members) {
		members := p.members
		members.Memory = g.front.b.memory()
		o.Group = &members
	}
	return o
}

// memory returns where lists of members are remembered: at the engine that all replicas share, or
// in the folder of the user.
func (b *build) memory() group.Memory {
	l := &remember.Lists{Logger: b.opts.Logger, Definition: b.lists.of}
	if r := b.opts.Replicas; b.node != nil && r != nil && r.Engine != nil {
		l.Store = &remember.Shared{Records: b.node.Engine(), Logger: b.opts.Logger}
		return l
	}
	l.Store = remember.Open(remember.Options{Dir: b.opts.StateDir, Logger: b.opts.Logger})
	return l
}

// listDefinitions tell lists of servers apart that are configured otherwise, as they are now:
// groups that go on must not remember what is hidden since a reload.
type listDefinitions struct {
	byServer atomic.Pointer[map[string]string]
}

// of returns the definition of a server's lists; empty for one of which nothing is remembered.
func (d *listDefinitions) of(server string) string {
	if all := d.byServer.Load(); all != nil {
		return (*all)[server]
	}
	return ""
}

// use has the definitions of a build count.
func (d *listDefinitions) use(b *build) {
	all := make(map[string]string)
	for i := range b.opts.Servers {
		if s := b.of(&b.opts.Servers[i]); s.Remember && len(b.opts.Groups) > 0 {
			all[s.Name] = s.shownDigest()
		}
	}
	d.byServer.Store(&all)
}

// shownDigest returns a digest of what defines a server, and what clients see of it.
func (s serverBuild) shownDigest() string {
	text, err := json.Marshal([]any{s.digest(), s.Tools, s.Prompts, s.Resources, s.Policy, s.Pin})
	if err != nil {
		return "" // it has nothing that is no JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// compareGroups adds to out what changes by b in groups.
func (b *build) compareGroups(former *current, out *Reloaded) {
	for i, p := range b.groups {
		g := &b.opts.Groups[i]
		switch was := former.findGroup(g.Name); {
		case was == nil:
			out.Added = append(out.Added, g.Name)
		case !b.kept[p.serverParts] || !reflect.DeepEqual(was.members, p.members):
			out.Changed = append(out.Changed, g.Name)
		case b.isGroupRenewed(g, former):
			out.Renewed = append(out.Renewed, g.Name)
		}
	}
}

// isGroupRenewed reports whether clients of a group that is kept prove otherwise who they are.
func (b *build) isGroupRenewed(g *GroupOptions, former *current) bool {
	at := slices.IndexFunc(former.opts.Groups, func(o GroupOptions) bool { return o.Name == g.Name })
	was := former.opts.Groups[at].Auth
	return !reflect.DeepEqual(g.Auth, was) || g.Auth == nil && !reflect.DeepEqual(b.opts.Auth, former.opts.Auth)
}
