package config

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/server"
	"github.com/mcpbridge/mcpbridge/internal/names"
)

// Group returns the group of a name; nil if there is none.
func (cfg *Config) Group(name string) *Group {
	at := slices.IndexFunc(cfg.Groups, func(g Group) bool { return g.Name == name })
	if at < 0 {
		return nil
	}
	return &cfg.Groups[at]
}

// Server returns the server of a name; nil if there is none.
func (cfg *Config) Server(name string) *Server {
	at, known := cfg.places[name]
	if cfg.places == nil {
		at = slices.IndexFunc(cfg.Servers, func(s Server) bool { return s.Name == name })
		known = at >= 0
	}
	if !known {
		return nil
	}
	return &cfg.Servers[at]
}

// byName returns groups in the order of their names.
func byName(groups map[string]Group) (out []Group) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		g.Name = name
		out = append(out, g)
	}
	return out
}

// groups finds the members of all groups, and checks them.
func (c checker) groups() {
	for i := range c.Groups {
		g := &c.Groups[i]
		path := key.Join("groups", g.Name)
		g.CheckName(c.rep)
		if s := c.Server(g.Name); s != nil {
			c.rep.Fail(path, "a server has that name, too, and both would be at /mcp/%s; rename one of them", g.Name)
		}
		c.members(g, path)
		if len(g.Members) == 0 {
			if !c.rep.Mistaken(path) {
				c.rep.Fail(key.Join(path, "servers"), "has no server that is enabled; name some, or write [\"*\"] for all")
			}
			continue
		}
		g.CheckPrefer(c.rep, path)
		c.prefixes(g, path)
		g.Rate.Check(c.rep, key.Join(path, "rate"))
		g.Policy.Check(c.rep, key.Join(path, "policy"), c.AuthOfGroup(g))
	}
}

// members sets those of a group: the servers that it names, but for disabled ones, and in the place
// of * all others that may be in it.
func (c checker) members(g *Group, path string) {
	first := make(map[string]int, len(g.Servers)) // where each name stands first
	for i, name := range slices.Backward(g.Servers) {
		first[name] = i
	}
	for i, name := range g.Servers {
		here := key.Join(path, "servers", strconv.Itoa(i))
		s := c.Server(name)
		switch {
		case first[name] < i:
			c.rep.Fail(here, "%s is in the list already; remove one of them", name)
		case name == server.AllServers:
			c.addOthers(g, first, here)
		case s == nil && c.Group(name) != nil:
			c.rep.Fail(here, "%s is a group, and groups don't nest; name its servers", name)
		case s == nil:
			c.rep.Fail(here, "there is no server %s; %s", name, c.suggest(name))
		case s.Disabled:
			c.rep.Warn(here, "%s is disabled, and is left out", name)
		default:
			if why := c.unfit(g, s); why != "" {
				c.rep.Fail(here, "%s", why)
			}
			g.Members = append(g.Members, name)
		}
	}
}

// mostSuggested is how many servers that are not there are compared with those that are: each takes
// as long as there are servers.
const mostSuggested = 20

// suggest returns the end of a message about a server that is not there.
func (c checker) suggest(name string) string {
	if *c.suggested++; *c.suggested > mostSuggested {
		return "name one that is below servers"
	}
	return key.Suggest(name, c.serverNames())
}

// addOthers adds all servers that may be in a group and that it does not name: named has those.
func (c checker) addOthers(g *Group, named map[string]int, here string) {
	taken := make(map[string]string) // the first member that has a prefix
	for _, name := range slices.Backward(g.Members) {
		taken[c.Server(name).NamePrefix()] = name
	}
	for i := range c.Servers {
		s := &c.Servers[i]
		if _, isNamed := named[s.Name]; s.Disabled || isNamed {
			continue
		}
		why, prefix := c.unfit(g, s), s.NamePrefix()
		if other, clash := taken[prefix]; why == "" && clash && g.Prefix == "always" {
			why = "names of " + s.Name + " and of " + other + " would both begin with " + prefix + "__; write a prefix of its own for one of them"
		}
		if why != "" {
			c.rep.Warn(here, "%s; it is left out of the group", why)
			continue
		}
		if _, clash := taken[prefix]; !clash {
			taken[prefix] = s.Name
		}
		g.Members = append(g.Members, s.Name)
	}
}

// unfit returns why a server can't be in a group: its clients are others, or what they send would
// go to several servers. It is empty if it can.
func (c checker) unfit(g *Group, s *Server) string {
	a := s.UpstreamAuth
	clients := c.AuthOfGroup(g)
	switch {
	case c.o.OneUser && a != nil && a.TokenExchange != nil:
		return s.Name + " exchanges the tokens of its callers, and on standard input there are none"
	case !c.o.OneUser && !sameClients(c.AuthOf(s), clients):
		return "clients of " + s.Name + " prove who they are otherwise than those of the group, which would be a way around it; write the same auth for both"
	case a != nil && a.Passthrough != nil:
		return s.Name + " gets the token of its caller (passthrough), which is for that server alone, and clients of a group have one for all"
	case a != nil && a.TokenExchange != nil && (clients == nil || len(clients.JWT) == 0):
		return s.Name + " exchanges the tokens of its callers, and those of the group have none; write auth: {jwt: …} for the group"
	}
	return ""
}

// sameClients reports whether clients prove in the same way who they are. Anonymous ones do so
// whether that was written or not.
func sameClients(a, b *server.Auth) bool {
	anonymous := func(a *server.Auth) bool { return a == nil || a.Word != "" }
	return anonymous(a) && anonymous(b) || reflect.DeepEqual(a, b)
}

// prefixes finds two members with one prefix, and one that leaves no room for names.
func (c checker) prefixes(g *Group, path string) {
	if g.Prefix != "always" {
		return
	}
	of := make(map[string]string)
	for _, name := range g.Members {
		prefix := c.Server(name).NamePrefix()
		if other := of[prefix]; other != "" {
			c.rep.Fail(key.Join(path, "servers"), "names of %s and of %s would both begin with %s__; write a prefix of its own for one of them, below servers", other, name, prefix)
		}
		of[prefix] = name
		if least := names.LeastMax(prefix); int(g.NameMax) < least {
			c.rep.Fail(key.Join(path, "name_max"), "%d has no room for the prefix %s of %s; write %d at least, or a shorter prefix for the server", g.NameMax, prefix, name, least)
		}
	}
}

// Names returns the names of the servers and the groups, in this order.
func (cfg *Config) Names() []string {
	all := cfg.serverNames()
	for i := range cfg.Groups {
		all = append(all, cfg.Groups[i].Name)
	}
	return all
}

func (cfg *Config) serverNames() (all []string) {
	for i := range cfg.Servers {
		all = append(all, cfg.Servers[i].Name)
	}
	return all
}

// AuthOfGroup returns how clients of a group prove who they are; nil for not at all.
func (cfg *Config) AuthOfGroup(g *Group) *server.Auth {
	if g.Auth != nil {
		return g.Auth
	}
	return cfg.Auth
}

// PublicURLOfGroup returns the URL by which clients know a group; empty if it is not known.
func (cfg *Config) PublicURLOfGroup(g *Group) string { return cfg.publicURL(g.PublicURL, g.Name) }

// Only returns the configuration of one server alone, which is enabled then, or of one group and
// its servers. It returns nil if there is none of the name.
func (cfg *Config) Only(name string) *Config {
	one := *cfg
	one.Servers, one.Groups, one.Default = nil, nil, ""
	members := []string{name}
	if g := cfg.Group(name); g != nil {
		one.Groups, members = []Group{*g}, g.Members
	}
	for _, member := range members {
		s := cfg.Server(member)
		if s == nil {
			return nil
		}
		one.Servers = append(one.Servers, *s)
		one.Servers[len(one.Servers)-1].Disabled = false
	}
	one.places = nil
	return &one
}

// An endpoint is what clients connect to.
type endpoint struct {
	path, name        string
	ownURL, publicURL string       // as it is written there, and as it counts
	own, clients      *server.Auth // likewise
}

// endpoints returns those of all servers that are not disabled, and of all groups.
func (cfg *Config) endpoints() []endpoint {
	all := make([]endpoint, 0, len(cfg.Servers)+len(cfg.Groups))
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; !s.Disabled {
			all = append(all, endpoint{key.Join("servers", s.Name), s.Name, s.PublicURL, cfg.PublicURLOf(s), s.Auth, cfg.AuthOf(s)})
		}
	}
	for i := range cfg.Groups {
		g := &cfg.Groups[i]
		all = append(all, endpoint{key.Join("groups", g.Name), g.Name, g.PublicURL, cfg.PublicURLOfGroup(g), g.Auth, cfg.AuthOfGroup(g)})
	}
	return all
}

// what returns what the endpoint is, and its name.
func (e *endpoint) what() string {
	if key.Parent(e.path) == "groups" {
		return "the group " + e.name
	}
	return "the server " + e.name
}
