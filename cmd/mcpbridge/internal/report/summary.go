package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// A Summary is what would be served, fit to be shown.
type Summary struct {
	Listen  string   `json:"listen"`
	Admin   string   `json:"admin,omitempty"`
	Include []string `json:"include,omitempty"` // files that were read, too
	Servers []Served `json:"servers"`
	Groups  []Group  `json:"groups,omitempty"`

	Replicas *Replicas `json:"replicas,omitempty"` // nil for one
	Connect  *States   `json:"connect,omitempty"`  // nil if nobody was asked
	Warnings []Problem `json:"warnings,omitempty"`
}

// A Served is one of the servers.
type Served struct {
	Name      string   `json:"name"`
	Endpoint  string   `json:"endpoint,omitempty"` // empty if disabled
	Target    string   `json:"target"`
	Era       string   `json:"era"`
	Isolation string   `json:"isolation"`
	Connect   float64  `json:"connect_seconds"`    // timeouts.connect, of which the default depends on the server
	Remember  bool     `json:"remember,omitempty"` // of a command
	Headers   []string `json:"headers,omitempty"`  // names only
	Env       []string `json:"env,omitempty"`      // of a command; names only
	Clients   string   `json:"clients,omitempty"`  // how they prove who they are; empty if they don't
	Disabled  bool     `json:"disabled,omitempty"`
	Shown     []Shown  `json:"shown,omitempty"` // what clients see of it, if that is not all as it is
}

// NewSummary returns what would be served. env returns the names of the variables that the
// command of a server gets.
func NewSummary(c *config.Config, env func(*config.Config, *config.Server) []string) Summary {
	out := Summary{Listen: c.Listen, Admin: c.Admin, Include: c.Include, Servers: make([]Served, 0, len(c.Servers)), Replicas: replicasOf(c.Replicas)}
	for i := range c.Servers {
		s := &c.Servers[i]
		sum := Served{
			Name: s.Name, Target: s.Target(), Era: s.Era, Isolation: string(s.Isolation),
			Connect: s.Timeouts.Connect.Seconds(), Remember: s.Remember && s.Command != "",
			Headers: s.HeaderNames(), Env: env(c, s), Disabled: s.Disabled,
		}
		if !s.Disabled {
			sum.Endpoint, sum.Clients, sum.Shown = Endpoint(c, c.Listen, s.Name), proofs(c, c.AuthOf(s), c.PublicURLOf(s)), shownOf(s)
		}
		out.Servers = append(out.Servers, sum)
	}
	out.Groups = groupsOf(c)
	return out
}

// All returns the servers, and then the groups.
func (s *Summary) All() []any {
	all := []any{}
	for _, server := range s.Servers {
		all = append(all, server)
	}
	for _, g := range s.Groups {
		all = append(all, g)
	}
	return all
}

// Print prints it into a table for people. path is the file that was read.
func (s Summary) Print(tw io.Writer, path string) {
	admin := s.Admin
	if admin == "" {
		admin = "off"
	}
	_, _ = output.Printf(tw, "%s can be used.\n\nlisten\t%s\nadmin\t%s\n", path, s.Listen, admin)
	for _, file := range s.Include {
		_, _ = output.Printf(tw, "include\t%s\n", file)
	}
	s.Replicas.print(tw)
	_, _ = output.Printf(tw, "\nSERVER\tENDPOINT\tREACHED BY\tERA\tISOLATION\tCONNECT\n")
	for _, server := range s.Servers {
		at := server.Endpoint
		if server.Disabled {
			at = "disabled"
		}
		_, _ = output.Printf(tw, "%s\t%s\t%s\t%s\t%s\t%gs\n", server.Name, at, server.Target, server.Era, server.Isolation, server.Connect)
	}
	printGroups(tw, s.Groups)
	for i, server := range slices.DeleteFunc(slices.Clone(s.Servers), func(s Served) bool { return s.Env == nil || s.Disabled }) {
		if i == 0 {
			_, _ = output.Printf(tw, "\nSERVER\tVARIABLES OF ITS COMMAND\n")
		}
		_, _ = output.Printf(tw, "%s\t%s\n", server.Name, strings.Join(server.Env, ", "))
	}
	s.printClients(tw)
	printShown(tw, s.Servers)
}

// printClients says how clients prove who they are, of servers and groups where they do.
func (s Summary) printClients(w io.Writer) {
	some := false
	row := func(name, clients string) {
		if clients == "" {
			return
		}
		if !some {
			_, _ = output.Printf(w, "\nSERVER\tCLIENTS PROVE WHO THEY ARE BY\n") // its error comes with Flush
		}
		some = true
		_, _ = output.Printf(w, "%s\t%s\n", name, clients)
	}
	for _, server := range s.Servers {
		row(server.Name, server.Clients)
	}
	for _, g := range s.Groups {
		row(g.Name, g.Clients)
	}
}

// proofs says how clients of an endpoint with a public URL prove who they are; empty if they don't.
func proofs(c *config.Config, a *config.Auth, publicURL string) string {
	if a == nil {
		return ""
	}
	var ways, names, issuers []string
	for _, j := range a.JWT {
		issuers = append(issuers, j.Issuer)
	}
	for _, t := range a.Tokens { // one who exchanges a token has two
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	if len(issuers) > 0 {
		ways = append(ways, fmt.Sprintf("access tokens of %s for %s", strings.Join(issuers, " and "), publicURL))
	}
	if a.MTLS != nil {
		ways = append(ways, "certificates of "+c.TLS.ClientCA)
	}
	if len(names) > 0 {
		ways = append(ways, "tokens of "+strings.Join(names, ", "))
	}
	return strings.Join(ways, "; ")
}
