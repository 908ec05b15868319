package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/remember"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// hook reaches what package gateway does not export.
var hook = cmdhook.Of[gateway.Options, gateway.Gateway]()

// An upstream is how servers are reached. The zero value does it over the network and
// starts processes; a test has servers in memory.
type upstream struct {
	http  http.RoundTripper                                      // nil: each server has its own
	start func(transport.CommandOptions) (transport.Conn, error) // nil: transport.StartCommand
}

// newOptions turns a configuration into the options of a gateway, whose commands guard
// ends if the process is killed; nil for nobody. oneClient says that there is one client,
// who decides what a command is asked first.
func newOptions(c *config.Config, oneClient bool, p process, log *slog.Logger, guard transport.Guard) *gateway.Options {
	o := options.Gateway(c)
	o.Default = c.Default
	o.MachineName, o.Environ, o.OneClient, o.Logger = machineName(), environOf(p), oneClient, log
	o.StateDir = remember.Dir(p.environ)
	o.PinDir = stateDir(c, p.environ)
	o.Logins = loginOptions(c, p.environ)
	if oneClient {
		o.Replicas, o.Auth = nil, nil // nobody else serves it, or is served
		o.Drain, o.CloseGrace = options.OneClient(c.Drain)
	}
	hooks := cmdhook.Hooks{Guard: guard, FromFile: c.File != "", Secrets: p.secrets, Start: p.upstream.start, Dialed: p.dialed, Observers: p.observers, Caller: p.caller, Listed: p.listed, QuietRequests: p.accessLog, Dial: make(map[string]func(context.Context) (transport.Conn, error)), Browse: make(map[string]func(string) error), Settings: make(map[string]settings.Server)}
	if p.lines != nil {
		hooks.Wrote = p.lines.Add
	}
	for i := range c.Servers {
		s := &c.Servers[i]
		if !s.Disabled {
			o.Servers = append(o.Servers, serverOptions(c, s, oneClient, p, log.With("upstream", s.Name), &hooks))
		}
	}
	for i := range c.Groups {
		group := options.Group(&c.Groups[i])
		if oneClient {
			group.Auth = nil
		}
		o.Groups = append(o.Groups, group)
	}
	hook.Set(o, hooks)
	return o
}

// serverOptions returns the options of a server of the gateway, and adds what it needs to hooks.
func serverOptions(c *config.Config, s *config.Server, oneClient bool, p process, log *slog.Logger, hooks *cmdhook.Hooks) gateway.ServerOptions {
	o := options.Server(s)
	o.Env = c.EnvOf(s, p.environ)
	hooks.Settings[s.Name] = options.Settings(s)
	if oneClient {
		auth, browse := onDemand(p, s)
		o.Auth, o.UpstreamAuth = nil, options.UpstreamAuth(auth)
		if browse != nil {
			hooks.Browse[s.Name] = browse
		}
	}
	o.RoundTripper = p.upstream.http
	options.AddAccess(&o, s)
	o.TLS = p.carried.ClientTLS(s, log)
	if s.Builtin != "" {
		book := notebook.New(notebook.Options{Version: release.Version(), Logger: log})
		hooks.Dial[s.Name] = (&builtin{book: book, modern: s.Builtin == options.ModernNotebook}).dial
	}
	return o
}

// environOf returns the environment of a process, which may be none.
func environOf(p process) []string {
	if p.environ == nil {
		return []string{}
	}
	return p.environ
}

// machineName returns what the machine is called, or nothing if it does not say.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// stateDir returns the folder for what outlives the process; empty if there is none.
func stateDir(c *config.Config, environ []string) string {
	if c.StateDir != "" {
		return c.StateDir
	}
	return remember.StateDir(environ)
}
