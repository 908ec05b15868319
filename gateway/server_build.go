package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// A serverBuild is what a build does for one server.
type serverBuild struct {
	*ServerOptions
	b   *build
	set settings.Server // what is to be heeded on the way to the server
}

func (b *build) of(s *ServerOptions) serverBuild {
	set, ok := b.opts.hooks.Settings[s.Name]
	if !ok {
		set = s.settings()
	}
	if len(s.Command) > 0 {
		set.Timeouts.Connect = cmp.Or(set.Timeouts.Connect, commandConnect)
	}
	return serverBuild{s, b, set}
}

// newParts makes what a server needs.
func (s serverBuild) newParts() (*serverParts, error) {
	p := &serverParts{common: s.b.common, identity: s.identity()}
	p.quirks = quirks.New(quirks.Options{Server: s.Name, Off: s.set.Quirks.Off, Count: s.b.metrics.Quirk, Logger: s.b.opts.Logger})
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.addCredentials(p); err != nil {
		return nil, err
	}
	p.server = server.New(s.serverOptions(p))
	return p, nil
}

// check reports the first fault of a server that nothing below would find.
func (s serverBuild) check() error {
	switch {
	case count(s.URL != "", len(s.Command) > 0, s.Handler != nil, s.b.opts.hooks.Dial[s.Name] != nil, s.b.opts.hooks.Backs[s.Name] != nil) != 1:
		return errors.New("want exactly one of URL, Command and Handler")
	case !slices.Contains([]Era{"", Legacy, Modern, EraOfClient}, s.Era):
		return fmt.Errorf("unknown Era %q", s.Era)
	case !slices.Contains([]Placement{"", PlaceAny, PlaceOne}, s.Replicas):
		return fmt.Errorf("unknown Replicas %q", s.Replicas)
	case !slices.Contains([]Isolation{"", IsolatePrincipal, IsolateRequest, IsolateNothing}, s.Isolation):
		return fmt.Errorf("unknown Isolation %q", s.Isolation)
	case s.set.ByClient() && (s.Transport == TransportSSE || len(s.Command) > 0 && s.set.Isolation == settings.IsolateNothing):
		return errors.New("EraOfClient is for servers that have two eras, and a session for each: it goes with neither TransportSSE nor IsolateNothing of a Command")
	case !areQuirks(s.QuirksOff):
		return fmt.Errorf("QuirksOff has %q, want names of docs/quirks.md, or AllQuirks", s.QuirksOff)
	case s.LogLevel != "" && s.LogLevel != "none" && !spec.LogLevel(s.LogLevel).Valid():
		return fmt.Errorf("unknown LogLevel %q", s.LogLevel)
	case !s.Tasks.Mode.valid() || s.Tasks.TTL < 0:
		return fmt.Errorf("Tasks of %q and %v: want a mode that exists, and a TTL of 0 or more", s.Tasks.Mode, s.Tasks.TTL)
	}
	return nil
}

// areQuirks reports whether all names are of quirks that can be switched off.
func areQuirks(names []string) bool {
	for _, name := range names {
		if q, ok := quirks.Of(name); name != AllQuirks && (!ok || q.Describe().Always) {
			return false
		}
	}
	return true
}

// entry is what the gateway is told of a server.
func (s serverBuild) entry(p *serverParts, open func(mcp.Changes) (mcp.Back, error)) router.ServerOptions {
	return router.ServerOptions{
		Name:       s.Name,
		Open:       open,
		OpenPeer:   s.openPeer(p),
		Command:    len(s.Command) > 0,
		HoldFor:    s.holdFor(),
		Definition: s.digest(),
		Settings:   s.set,
		Quirks:     p.quirks,
		Access:     p.access,
		Auth:       p.auth,
		Saw:        sawCaller(p.credentials),
		Visit:      visitOf(p),
		UserLogins: userLoginsOf(p),
		PublicURL:  s.publicURL(),
		OnlyFor:    loginOf(s.ServerOptions),
		Kept:       s.b.kept[p],
		Ended:      p.end,
	}
}

// openPeer returns what watches a server at another replica; nil if each replica has processes
// of its own, which may have other changes.
func (s serverBuild) openPeer(p *serverParts) func(upstream.Peer) (mcp.Back, error) {
	if len(s.Command) > 0 && s.set.Replicas == string(PlaceAny) {
		return nil
	}
	return p.server.OpenPeer
}

// holdFor returns for how long after its last call a replica holds a profile, if one serves
// all its calls: until the session with the server has ended.
func (s serverBuild) holdFor() time.Duration {
	if s.set.Replicas != string(PlaceOne) {
		return 0
	}
	lasts := cmp.Or(s.set.Idle, 5*time.Minute)
	if len(s.Command) > 0 {
		lasts = max(lasts, s.b.opts.clientIdle()) // its process may have state of a client
	}
	return lasts + time.Minute
}

// clientIdle returns how long a client that does not use the gateway may still be there.
func (o *Options) clientIdle() time.Duration { return cmp.Or(o.SessionIdle, 30*time.Minute) }

// loginOf returns the principal whose login a server is used with; empty if it is not one
// principal's.
func loginOf(s *ServerOptions) mcp.Principal {
	if s.UpstreamAuth == nil || s.UpstreamAuth.Login == nil {
		return ""
	}
	return mcp.Principal(s.UpstreamAuth.Login.Principal)
}

// publicURL returns the URL by which clients know a server; empty if it is not known.
func (s serverBuild) publicURL() string {
	if s.PublicURL != "" || s.b.opts.PublicURL == "" {
		return s.PublicURL
	}
	return strings.TrimSuffix(s.b.opts.PublicURL, "/") + "/mcp/" + s.Name
}

// serverOptions are those of the package that reaches the server.
func (s serverBuild) serverOptions(p *serverParts) server.Options {
	o := server.Options{
		Options: upstream.Options{
			Name:         s.Name,
			URL:          s.URL,
			Headers:      s.Header,
			Renewed:      &p.renewed,
			Credentials:  p.credentials,
			RoundTripper: s.RoundTripper,
			TLS:          s.TLS,
			ClientInfo:   release.Implementation(),
			Settings:     s.set,
			Subscribes:   s.b.number(limits.SubscribesEach),
			MaxMessage:   s.b.number(limits.UpstreamMessage),
			Logger:       s.b.opts.Logger,
			Metrics:      s.b.metrics,
			Quirks:       p.quirks,
			Losses:       s.b.losses,
			Limits:       s.b.opts.Limits,
			Sealer:       s.b.sealer,
			Observers:    s.b.opts.hooks.Observers,
		},
		Transport:   legacyback.Transport(s.Transport),
		Dial:        s.b.opts.hooks.Dial[s.Name],
		Dialed:      s.b.opts.hooks.Dialed,
		OneClient:   s.b.opts.OneClient,
		InGroup:     slices.ContainsFunc(s.b.opts.Groups, func(g GroupOptions) bool { return slices.Contains(g.Members, s.Name) }),
		ClientIdle:  s.b.opts.clientIdle(),
		KeepAlive:   s.b.opts.KeepAlive,
		MaxSessions: s.b.number(limits.Sessions),
	}
	switch {
	case s.Handler != nil:
		o.URL, o.RoundTripper = "http://"+s.Name+".invalid/", p.serveHandler(s.Handler)
	case len(s.Command) > 0:
		s.command(&o, p)
	}
	return o
}

// serveHandler returns what reaches a handler.
func (p *serverParts) serveHandler(h http.Handler) http.RoundTripper {
	m := httpserver.ServeInMemory(h)
	p.ends = append(p.ends, func() { m.Close() })
	return m
}

// wrote returns what is told of lines on the standard error of the command; nil for nobody.
func (s serverBuild) wrote() func(line string) {
	told, name := s.b.opts.hooks.Wrote, s.Name
	if told == nil {
		return nil
	}
	return func(line string) { told(name, line) }
}

// command adds what concerns commands alone.
func (s serverBuild) command(o *server.Options, p *serverParts) {
	o.MaxSessions = min(s.b.number(limits.CommandSessions), o.MaxSessions)
	o.MaxSessionsEach = s.b.number(limits.CommandSessionsEach)
	o.Start = s.b.opts.hooks.Start
	if s.Remember {
		o.StateDir = s.b.opts.StateDir
	}
	if r := s.b.opts.Replicas; s.b.node != nil && r != nil && r.Engine != nil && s.holdFor() > 0 {
		o.Records, o.Definition = s.b.node.Engine(), s.digest()
	}
	environ := s.b.opts.Environ
	if environ == nil {
		environ = os.Environ()
	}
	o.Command = transport.CommandOptions{
		Argv:       s.Command,
		Dir:        s.Dir,
		Environ:    environ,
		Env:        s.Env,
		Name:       s.Name,
		Quirks:     p.quirks,
		Logger:     s.b.opts.Logger,
		MaxMessage: s.b.number(limits.UpstreamMessage),
		CloseGrace: s.b.opts.CloseGrace,
		Hurry:      s.b.hurry,

		EndDetached: s.set.EndDetached,
		Guard:       s.b.opts.hooks.Guard,
		Secrets:     s.b.secrets,
		Wrote:       s.wrote(),
	}
}
