package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// A Summary is what would be served, fit to be shown.
type Summary struct {
	Listen  string   `json:"listen"`
	Admin   string   `json:"admin,omitempty"`
	Include []string `json:"include,omitempty"` // files that were read, too
	Servers []Served `json:"servers"`

	Replicas *Replicas `json:"replicas,omitempty"` // nil for one
	Connect  *States   `json:"connect,omitempty"`  // nil if nobody was asked
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
	out := Summary{Listen: c.Listen, Admin: c.Admin, Include: c.Include, Servers: []Served{}, Replicas: replicasOf(c.Replicas)}
	for i := range c.Servers {
		s := &c.Servers[i]
		sum := Served{
			Name: s.Name, Target: s.Target(), Era: s.Era, Isolation: string(s.Isolation),
			Connect: s.Timeouts.Connect.Seconds(), Remember: s.Remember && s.Command != "",
			Headers: s.HeaderNames(), Env: env(c, s), Disabled: s.Disabled,
		}
		if !s.Disabled {
			sum.Endpoint, sum.Clients, sum.Shown = Endpoint(c, c.Listen, s.Name), clientsOf(c, s), shownOf(s)
		}
		out.Servers = append(out.Servers, sum)
	}
	return out
}

// Print prints it for people. path is the file that was read.
func (s Summary) Print(w io.Writer, path string) error {
	admin := s.Admin
	if admin == "" {
		admin = "off"
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
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
	for i, server := range slices.DeleteFunc(slices.Clone(s.Servers), func(s Served) bool { return s.Env == nil || s.Disabled }) {
		if i == 0 {
			_, _ = output.Printf(tw, "\nSERVER\tVARIABLES OF ITS COMMAND\n")
		}
		_, _ = output.Printf(tw, "%s\t%s\n", server.Name, strings.Join(server.Env, ", "))
	}
	for i, server := range slices.DeleteFunc(slices.Clone(s.Servers), func(s Served) bool { return s.Clients == "" }) {
		if i == 0 {
			_, _ = output.Printf(tw, "\nSERVER\tCLIENTS PROVE WHO THEY ARE BY\n")
		}
		_, _ = output.Printf(tw, "%s\t%s\n", server.Name, server.Clients)
	}
	printShown(tw, s.Servers)
	return tw.Flush() // the writes above end up here, and so does their error
}

// clientsOf says how clients of a server prove who they are; empty if they don't.
func clientsOf(c *config.Config, s *config.Server) string {
	a := c.AuthOf(s)
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
		ways = append(ways, fmt.Sprintf("access tokens of %s for %s", strings.Join(issuers, " and "), c.PublicURLOf(s)))
	}
	if a.MTLS != nil {
		ways = append(ways, "certificates of "+c.TLS.ClientCA)
	}
	if len(names) > 0 {
		ways = append(ways, "tokens of "+strings.Join(names, ", "))
	}
	return strings.Join(ways, "; ")
}
