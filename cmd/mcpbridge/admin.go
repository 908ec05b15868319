package main

import (
	"cmp"
	"net/http"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/console"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

func newAdminCommand(p process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Print a link that opens the admin page of a running mcpbridge",
		Long: `Prints the URL of the admin page. If that asks for a token, the URL has a code
instead, which is good once, within a minute, for a session of 12 hours.`,
		Example: `  mcpbridge admin
  mcpbridge admin -c config.yaml
  xdg-open "$(mcpbridge admin)"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := p.console(cmd)
			if err != nil {
				return err
			}
			if a.Address.Socket != "" {
				return usageError("admin is a socket, which browsers can't open; see mcpbridge top and mcpbridge tail")
			}
			link, err := a.Link(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return output.JSON(p.stdout, link)
			}
			_, err = output.Printf(p.stdout, "%s\n", link.URL)
			return err
		},
	}
	consoleFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the link, and when it ends, as JSON")
	return cmd
}

// adminWants is the token that the admin address wants once clients have to prove who they
// are. Reloads use it, and run after them.
type adminWants struct {
	require     func(token string) // nil without an admin address
	made, where string             // the token, and its file; empty for none
}

// secureAdmin has the admin address want a token once clients of c have to prove who they
// are: it would let every user, command and page of this machine past that. A token of the
// configuration, or the mode of a socket, keeps others off anyway.
func (d *daemon) secureAdmin(c *config.Config) {
	s := d.started
	if d.wants.require == nil || d.wants.made != "" || s.AdminToken != "" || s.AdminSocket() != "" || s.AdminExposed() || !c.Authenticates() {
		return
	}
	d.wants.made, _ = auth.GenerateToken()
	d.secrets.Learn(d.wants.made)
	d.wants.require(d.wants.made)
	var err error
	if d.wants.where, err = console.StoreToken(stateDir(c, d.environ), console.Port(d.admin.Addr()), d.wants.made); err != nil {
		d.log.Warn("admin serves health and metrics alone: clients prove who they are, and the token that admin wants for more can't be stored; set admin_token, or state_dir", "err", err)
		return
	}
	d.log.Info("admin wants a token for more than health and metrics, since clients prove who they are; mcpbridge admin, top and tail read it", "file", d.wants.where)
}

// forget removes the file of the token.
func (w *adminWants) forget() {
	if w.where != "" {
		console.DropToken(w.where, w.made)
	}
}

// adminOptions are those of the handler of the admin address.
func (d *daemon) adminOptions() admin.Options {
	c, inner := d.config, hook.Inner(d.gateway)
	endpoint := func(name string) string { return report.Endpoint(c, d.mcp.Addr().String(), name) }
	feed := live.NewFeed(live.Options{Looker: string(mcp.AdminPrincipal), Secrets: d.secrets, Observe: func(o trace.Observer, changes func(live.Change)) func() {
		return d.watch(inner, o, changes)
	}})
	feed.SetBodies(c.AdminBodies)
	return admin.Options{
		Source: states{d.gateway, &d.draining, &d.joined, &d.settled}, Metrics: d.gateway.MetricsHandler(), Token: c.AdminToken, MetricsToken: c.MetricsToken,
		Counts: inner.Metrics(), Logger: d.log, Wrong: d.wrongAdmin,
		Exposed: c.AdminExposed(), Debug: c.AdminDebug || !c.AdminExposed(),
		Gateway: shown{inner, c.AdminBodies, endpoint}, Feed: feed, Logins: inner, Version: release.Version(),
		Rooms: report.Rooms{Inner: inner, Endpoint: endpoint}, Lines: d.lines,
		Reload: d.reloadHandler(), LastReload: d.lastReload,
	}
}

// wrongAdmin writes a line about a request to the admin address with a wrong token.
func (d *daemon) wrongAdmin(r *http.Request, from netip.Prefix) {
	hook.Inner(d.gateway).Audit().Refused(audit.Refusal("", "admin_token", "admin", r.RemoteAddr), from, "admin_token")
}

// watch has a feed told of requests and changes, until stop is called.
func (d *daemon) watch(g cmdhook.Inner, o trace.Observer, changes func(live.Change)) (stop func()) {
	still := g.WatchChanges(func(ev fanout.Event, followers int) {
		changes(live.Change{Server: mcp.ServerOf(ev.Topic.Scope), Kind: ev.Topic.Kind.String(), URI: cmp.Or(ev.URI, ev.Topic.URI), Followers: followers})
	})
	unobserved := d.observers.Add(o)
	return func() {
		unobserved()
		still()
	}
}

// shown is a gateway as the admin page shows it, with what servers ask if texts. It implements
// [admin.Gateway].
type shown struct {
	cmdhook.Inner
	texts    bool
	endpoint func(name string) string // as a client on this machine reaches it
}

// Status returns the gateway with or without the texts of what servers ask.
func (s shown) Status() *status.Snapshot { return s.Inner.Status(s.texts) }

// Room returns a group with the URL at which a client on this machine reaches it.
func (s shown) Room(group string) *status.Room {
	r := s.Inner.Room(group)
	if r != nil && r.Endpoint == "" {
		r.Endpoint = s.endpoint(group)
	}
	return r
}
