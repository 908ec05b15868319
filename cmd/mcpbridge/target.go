package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/argv"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A target is what the flags and arguments of call, listen and the like name.
type target struct {
	process
	path    string        // of -c
	headers []string      // of -H
	token   string        // of --token, as it was written
	timeout time.Duration // of --timeout; zero for what the server has
	tls     config.ServerTLS
	inner   bool // the server is always asked through a gateway
	single  bool // a group is no answer

	// Set by read.
	config *config.Config // of that server alone, or of a group and its servers
	group  *config.Group  // nil for a server
	words  []string       // the arguments that do not name the server
}

// flags adds the flags that name the server.
func (t *target) flags(fs *pflag.FlagSet) {
	fs.StringVarP(&t.path, "config", "c", "", "file in which the server has the NAME")
	fs.StringArrayVarP(&t.headers, "header", "H", nil, "`NAME: VALUE` to send to a URL; may be repeated")
	fs.DurationVar(&t.timeout, "timeout", 0, "how long the server may take to start, and for each answer (default what the file says, or 60s)")
	certificateFlags(fs, &t.tls)
	fs.StringVar(&t.token, "token", "", "your token, for a server that is sent that of each caller; `${NAME}` and ${file:PATH} stand for a variable and a file")
}

// read finds out which server is meant: a URL, a NAME of the file of -c, or what stands
// after --.
func (t *target) read(cmd *cobra.Command, args []string) error {
	return t.readFrom(cmd, args, cmd.ArgsLenAtDash())
}

// readFrom reads the arguments, of which those from dash on are a command; negative for
// none.
func (t *target) readFrom(cmd *cobra.Command, args []string, dash int) error {
	o := config.Options{Environ: t.environ}
	switch {
	case t.timeout < 0:
		return usageError("--timeout %v is negative; leave it out for what the file says, or 60s", t.timeout)
	case dash >= 0 && t.path != "":
		return usageError("a file and a command are both given; leave one out")
	case t.tls != (config.ServerTLS{}) && (dash >= 0 || t.path != ""):
		return usageError("--cacert, --cert and --key are for a URL; a server of a file has tls: {ca: …, cert: …, key: …} there")
	case dash >= 0 && len(t.headers) > 0:
		return usageError("a command gets no headers; leave --header out, or give a URL")
	case dash >= 0 && len(args) > dash:
		command := args[dash:]
		t.words = args[:dash]
		o.Servers = []config.Server{{Name: argv.Name(command), Command: command[0], Args: command[1:], InheritEnv: true}}
	case len(args) == 0 || dash >= 0:
		return usageError("which server? Give its URL, its NAME with -c FILE, or -- and a command; see %s --help", cmd.CommandPath())
	case t.path != "":
		o.Path, t.words = t.path, args[1:]
		return t.load(o, args[0])
	default:
		return t.readURL(cmd, o, args)
	}
	if err := t.startable(cmd, o.Servers); err != nil {
		return err
	}
	return t.load(o, o.Servers[0].Name)
}

func (t *target) readURL(cmd *cobra.Command, o config.Options, args []string) (err error) {
	if isAddress(args[0]) {
		return notAServer(cmd, t.args, args[0])
	}
	if !strings.Contains(args[0], "://") {
		return usageError("%q is not the URL of a server; write one such as http://127.0.0.1:2526/mcp/notebook, a NAME with -c FILE, or -- and a command", args[0])
	}
	t.words = args[1:]
	if o, err = t.urlServer(o, cmd, args[0]); err != nil {
		return err
	}
	if o.Servers[0].Headers, err = readHeaders(t.headers); err != nil {
		return err
	}
	if err = readable(t.tls); err == nil {
		err = t.load(o, o.Servers[0].Name)
	}
	if err == nil && t.tls != (config.ServerTLS{}) {
		t.config.Servers[0].TLS = t.tls
	}
	return err
}

// readable returns an error if a file of flags is not there.
func readable(of config.ServerTLS) error {
	for _, name := range []string{of.CA, of.Cert, of.Key} {
		if name == "" {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			return usageError("--cacert, --cert or --key: %v; give the path of a file in PEM", err)
		}
	}
	return nil
}

// certificateFlags adds the flags of certificates for a URL, as curl has them.
func certificateFlags(fs *pflag.FlagSet, to *config.ServerTLS) {
	fs.StringVar(&to.CA, "cacert", "", "`FILE` of the authorities, or of the certificate, that a URL is trusted by")
	fs.StringVar(&to.Cert, "cert", "", "`FILE` of your certificate for a URL")
	fs.StringVar(&to.Key, "key", "", "`FILE` of its private key")
}

// load loads the configuration and takes the server out of it.
func (t *target) load(o config.Options, name string) error {
	c, warnings, err := loadConfig(o)
	if o.Path == "" {
		warn(t.stderr, warnings)
	}
	if err != nil {
		return err
	}
	t.learn(c)
	if t.config = c.Only(name); t.config == nil {
		return usageError("no server of %s is called %q; there are: %s", o.Path, name, strings.Join(c.Names(), ", "))
	}
	if t.group = t.config.Group(name); t.group != nil && t.single {
		return usageError("%s is a group; name one of its servers: %s", name, strings.Join(t.group.Members, ", "))
	}
	for i := range t.config.Servers {
		s := &t.config.Servers[i]
		s.Remember = false // it is asked itself
		t.give(&s.Timeouts)
		shown := s.Names()
		t.inner = t.inner || !shown.IsZero()
	}
	s := &t.config.Servers[0]
	switch {
	case o.Path == "" || len(t.headers) == 0:
	case s.URL == "" || t.group != nil:
		return usageError("%s is no URL and gets no headers; leave --header out", name)
	default:
		if s.Headers, err = readHeaders(t.headers); err != nil {
			return err
		}
		t.learn(t.config)
	}
	return nil
}

// give sets what --timeout says.
func (t *target) give(of *settings.Timeouts) {
	if t.timeout > 0 {
		of.Connect, of.Request, of.Max = t.timeout, t.timeout, max(of.Max, t.timeout)
	}
}

// open connects to the server. A modern one that has a URL is asked directly, so that what
// is printed is what it sent; every other is asked through a gateway of its own.
func (t *target) open(ctx context.Context) (*client.Client, error) {
	if err := t.takeToken(); err != nil {
		return nil, err
	}
	if err := t.authorize(ctx, t.config); err != nil {
		return nil, err
	}
	o, upstream, err := t.reach(t.config, nil)
	if err != nil {
		return nil, err
	}
	if t.group != nil {
		return client.NewBehind(o, t.group.Name, release.Implementation())
	}
	s := &t.config.Servers[0]
	if upstream.Era() == spec.Unknown {
		v, err := upstream.Judge(ctx)
		if err == nil && v.Era == spec.Unknown {
			err = noServer(upstream, &v, s)
		}
		if err != nil {
			upstream.Close()
			return nil, err
		}
		upstream.SetEra(v.Era)
	}
	if upstream.Era() == spec.Modern && s.URL != "" && !s.OverWebSocket() && s.UpstreamAuth == nil && !t.inner {
		return client.New(s.URL, client.Options{Header: options.Header(s), Info: release.Implementation(), TLS: o.Servers[0].TLS}), nil
	}
	return client.NewBehind(o, s.Name, release.Implementation())
}

// name is the server as a person named it.
func (t *target) name() string {
	if t.group != nil {
		return "the group " + t.group.Name
	}
	return t.config.Servers[0].Target()
}

// reach returns the first server of a configuration, and the options of a gateway for it.
func (p process) reach(c *config.Config, guard transport.Guard) (*gateway.Options, *server.Server, error) {
	o := newOptions(c, false, p, client.StrayLog(p.stderr, p.secrets.String), guard)
	o.Drain, o.DebugErrors = client.Drain, true
	options.OfCommand(o)
	if p.listed != nil {
		options.AsTheyAre(o)
	}
	servers, err := hook.Servers(o)
	if err != nil {
		return nil, nil, err
	}
	return o, servers[0], nil
}

// noServer is the error that there is no MCP server where one was looked for.
func noServer(upstream *server.Server, v *mcp.Verdict, s *config.Server) error {
	err := fmt.Errorf("%s %s: %s", s.Target(), upstream.Trouble(v), v.Reason)
	if way := upstream.Advice(v); way != "" {
		err = fmt.Errorf("%w; %s", err, way)
	}
	return err
}
