package server

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

// AllServers, as a member of a group, stands for every server that may be one.
const AllServers = "*"

// A Group is several servers at one endpoint.
type Group struct {
	Name string `koanf:"-"`
	// Members are the names of its servers, in order, once they are known.
	Members []string `koanf:"-"`

	Servers       []string          `koanf:"servers" secret:"no" doc:"names of the servers, in the order of their lists; * stands for all others that may be in it, in the order of the file"`
	Prefix        string            `koanf:"prefix" default:"always" enum:"always never" doc:"whether names of tools and prompts begin with the prefix of their server"`
	Prefer        map[string]string `koanf:"prefer" secret:"no" doc:"with prefix: never, the server that has a name which several have"`
	Patience      time.Duration     `koanf:"patience" default:"2s" min:"10ms" max:"10m" doc:"how long a list waits for a server that has answered before"`
	StartPatience time.Duration     `koanf:"start_patience" default:"20s" min:"10ms" max:"10m" doc:"how long a list waits for a server that is starting"`
	OnMissing     string            `koanf:"on_missing" default:"leave_out" enum:"leave_out fail" doc:"what becomes of a list while a server is missing"`
	NameMax       int64             `koanf:"name_max" default:"64" min:"16" max:"128" doc:"how long names of tools and prompts may be; longer ones end in a digest"`
	Attribute     bool              `koanf:"attribute" default:"true" doc:"whether the messages of input requests begin with the name of the server that asks"`
	Instructions  string            `koanf:"instructions" secret:"no" doc:"instructions for clients instead of those of the servers"`

	Auth      *Auth   `koanf:"auth" word:"none" doc:"overrides auth of all servers and groups; that of its servers has to be the same"`
	PublicURL string  `koanf:"public_url" secret:"no" doc:"the URL of the endpoint for clients, byte for byte; the default is the common public_url, /mcp/ and the name"`
	Policy    *Policy `koanf:"policy" doc:"who may do what with the group, by the names that its clients see; those of its servers apply, too"`
	Rate      Rates   `koanf:"rate" doc:"how many requests the group gets, handshakes aside; 0 is no bound"`
}

// CheckName checks the name of a group.
func (g *Group) CheckName(rep *key.Report) {
	if !isName(g.Name) {
		rep.Fail(key.Join("groups", g.Name), "a group's name is part of its endpoint's path; use letters, digits, dots, - and _, at most 64")
	}
}

// CheckPrefer checks who has names that several servers have.
func (g *Group) CheckPrefer(rep *key.Report, path string) {
	if len(g.Prefer) > 0 && g.Prefix != "never" {
		rep.Fail(key.Join(path, "prefer"), "has no effect while names have prefixes, so that no two are alike; write prefix: never, or remove it")
		return
	}
	members := make(map[string]bool, len(g.Members))
	for _, member := range g.Members {
		members[member] = true
	}
	for name, member := range g.Prefer {
		if !members[member] {
			rep.Fail(key.Join(path, "prefer", name), "%q is no server of the group; write one of %s", member, key.Either(g.Members))
		}
	}
}
