package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/clients"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/guard"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

const probeLong = `Asks a server what it speaks, as serve does, and then for what it has. Prints in
one line what works and how many limits there are, and then the tools, the revisions,
the transport, which features clients of the other era get in another form or not at
all, with the reason, and what becomes of each extension. What the server does not
offer is named in one line, and is no limit. Last come the quirks of the server that
were met: what it does against the protocol, the sentence of the specification that
this breaks, and what mcpbridge does.

--verbose adds how each question was answered and how long that took, the features that
clients get unchanged, what becomes of what a server may do without declaring it, such
as asking the user, and the rules of the translation (docs/rules.md).

A command is started with the environment of mcpbridge, and is ended again; it is
started anew only if it ends, or says nothing more, when it is asked. Nothing is called but lists. Credentials that are to
stay off the command line come from the environment, as for wrap:
MCPBRIDGE_SERVERS__DOCS_EXAMPLE_COM__HEADERS__AUTHORIZATION.

--as CLIENT sends what that client sends up to its first list of tools instead, with
its headers, directly and through mcpbridge, and says what is refused and why. What
clients send is known from published code and reports; --as all plays each in turn.

NAME may be a group: then each of its servers is asked.

Exit codes: 0 the server answered; 1 no MCP server answered, and why, or, with --as,
mcpbridge refuses what the server takes; 2 wrong usage.`

// A probing is what flags say of a probe.
type probing struct {
	path, as string
	headers  []string
	timeout  time.Duration
	asJSON   bool
	verbose  bool
	tls      config.ServerTLS
}

func newProbeCommand(p process) *cobra.Command {
	var o probing
	cmd := &cobra.Command{
		Use:   "probe URL | NAME -c FILE | -- COMMAND ARGS...",
		Short: "Find out what a server is, and what of it clients of the other era get",
		Long:  probeLong,
		Example: `  mcpbridge probe https://docs.example.com/mcp -H "Authorization: Bearer $DOCS_TOKEN"
  mcpbridge probe -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  mcpbridge probe team -c config.yaml
  mcpbridge probe --json http://127.0.0.1:3000/mcp | jq -r '.crossings[] | select(.outcome == "refused").feature'
  mcpbridge probe http://127.0.0.1:3000/mcp --as claude-code
  mcpbridge probe --as all -- npx -y @modelcontextprotocol/server-everything`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, p, args) },
	}
	nameFlag(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&o.path, "config", "c", "", "file in which the server, or the group, has the NAME")
	fs.StringArrayVarP(&o.headers, "header", "H", nil, "`NAME: VALUE` to send to a URL; may be repeated")
	fs.DurationVar(&o.timeout, "timeout", 0, "bound of each question (default timeouts.connect: 10s for a URL, 60s for a command)")
	certificateFlags(fs, &o.tls)
	fs.StringVar(&o.as, "as", "", "play the opening of `CLIENT` instead, as of claude-code, or of all that are known")
	fs.BoolVar(&o.asJSON, "json", false, "print JSON")
	fs.BoolVar(&o.verbose, "verbose", false, "print how it answered, and everything that clients get of it, with the rules")
	return cmd
}

func (o *probing) run(cmd *cobra.Command, p process, args []string) error {
	var players []clients.Client
	if o.as != "" {
		var err error
		if players, err = clients.Select(o.as); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	c, isGroup, err := p.probed(cmd, args, o)
	if err == nil && !o.asJSON { // which says that, too, and how long it took
		err = p.startable(cmd, c.Servers)
	}
	switch {
	case err != nil:
		return err
	case isGroup && o.as != "":
		return usageError("--as plays clients against one server; name one of %s", strings.Join(c.Names(), ", "))
	case isGroup:
		return p.probeAll(cmd.Context(), cmd.OutOrStdout(), c, o)
	}
	pr, err := newProber(cmd.Context(), p, c)
	if err != nil {
		return err
	}
	defer pr.keep.Close() // after all that it minds
	if o.as != "" {
		return pr.playAs(cmd.Context(), cmd.OutOrStdout(), players, o.asJSON)
	}
	return pr.run(cmd.Context(), cmd.OutOrStdout(), o)
}

// A prober probes one server for a person.
type prober struct {
	process
	upstream *server.Server
	options  *gateway.Options // of a gateway for it
	config   *config.Config   // of the server alone
	server   *config.Server
	keep     *guard.Guard
	progress io.Writer // nil for nobody
	begun    time.Time
}

// probed reads the one server that the arguments name, or the group and its servers.
func (p process) probed(cmd *cobra.Command, args []string, how *probing) (one *config.Config, isGroup bool, err error) {
	path, headers, timeout := how.path, how.headers, how.timeout
	if how.tls != (config.ServerTLS{}) && (cmd.ArgsLenAtDash() == 0 || path != "") {
		return nil, false, usageError("--cacert, --cert and --key are for a URL; a server of a file has tls: {ca: …, cert: …, key: …} there")
	}
	if cmd.ArgsLenAtDash() == 0 && len(headers) > 0 {
		return nil, false, usageError("a command gets no headers; leave --header out, or give a URL")
	}
	if timeout < 0 {
		return nil, false, usageError("--timeout %v is negative; leave it out for 10s (a URL) or 60s (a command)", timeout)
	}
	o, name := config.Options{Path: path, Environ: p.environ}, strings.Join(args, " ")
	switch {
	case path == "":
		if o, err = p.oneServer(o, cmd, args); err != nil {
			return nil, false, err
		}
		name = o.Servers[0].Name
		if err = readable(how.tls); err != nil {
			return nil, false, err
		}
		if o.Servers[0].Headers, err = readHeaders(headers); err != nil {
			return nil, false, err
		}
	case len(headers) > 0:
		return nil, false, usageError("headers of %s stand in the file; leave --header out", name)
	}
	c, err := p.load(o)
	if err != nil {
		return nil, false, err
	}
	if one = c.Only(name); one == nil {
		return nil, false, usageError("no server or group of %s is called %q; there are: %s", path, name, strings.Join(c.Names(), ", "))
	}
	if how.tls != (config.ServerTLS{}) {
		one.Servers[0].TLS = how.tls
	}
	for i := range one.Servers {
		if t := &one.Servers[i].Timeouts; timeout > 0 {
			t.Connect, t.Request = timeout, timeout
		}
	}
	return one, len(one.Groups) > 0, nil
}

// newProber returns what probes the only server of a configuration. Who gets it closes keep.
func newProber(ctx context.Context, p process, c *config.Config) (*prober, error) {
	pr := &prober{process: p, config: c, server: &c.Servers[0], begun: time.Now(), keep: guard.New(slog.New(slog.DiscardHandler))}
	err := p.authorize(ctx, c)
	if err == nil {
		pr.options, pr.upstream, err = p.reach(c, pr.keep)
	}
	if err != nil {
		pr.keep.Close()
		return nil, err
	}
	if output.IsTerminal(p.stderr) {
		pr.progress = p.stderr
	}
	return pr, nil
}

// probeAll probes each server of a group.
func (p process) probeAll(ctx context.Context, out io.Writer, c *config.Config, o *probing) (err error) {
	reports := []*report.Report{}
	for i := range c.Servers {
		pr, failed := newProber(ctx, p, c.Only(c.Servers[i].Name))
		if failed != nil {
			return errors.Join(err, failed)
		}
		if !o.asJSON {
			_, _ = output.Printf(out, "%s\n", c.Servers[i].Name) // the error is the report's, too
			err = errors.Join(err, pr.run(ctx, out, o))
		} else if r, failed := pr.report(ctx); r != nil {
			reports, err = append(reports, r), errors.Join(err, failed)
		}
		pr.keep.Close()
	}
	if o.asJSON {
		err = errors.Join(output.JSON(p.secrets.Writer(out), reports), err)
	}
	return err
}

// readHeaders reads headers as people write them for curl.
func readHeaders(lines []string) (map[string]string, error) {
	headers := make(map[string]string)
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			// The line may be a credential, and is not repeated.
			return nil, usageError("--header wants NAME: VALUE, as in 'Authorization: Bearer TOKEN'")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

func (p *prober) run(ctx context.Context, out io.Writer, o *probing) error {
	r, err := p.report(ctx)
	if r == nil {
		return err
	}
	out = p.secrets.Writer(out)
	if o.asJSON {
		return cmp.Or(output.JSON(out, r), err)
	}
	return cmp.Or(r.Print(out, o.verbose), err)
}

// report returns what was found out, and why that is no MCP server, or the error of finding it out.
func (p *prober) report(ctx context.Context) (*report.Report, error) {
	v, err := p.examine(ctx)
	p.upstream.Close()
	if err != nil {
		return nil, err
	}
	r := report.New(p.upstream, p.server, v)
	if v.Era == spec.Unknown {
		err = noServer(p.upstream, &v, p.server)
	}
	return r, err
}

// examine finds out the era and then asks the server, as one of that era, what it has.
func (p *prober) examine(ctx context.Context) (mcp.Verdict, error) {
	how := mcp.Probing{Lists: true, Begin: p.began}
	if p.server.Type == "sse" {
		return p.upstream.Initialize(ctx, p.server.Timeouts.Connect, how) // which has one era alone
	}
	v, err := p.upstream.Detect(ctx, spec.Unknown, how)
	if err != nil || v.Era != spec.Legacy || v.Description != nil {
		return v, err
	}
	greeting, err := p.upstream.Initialize(ctx, p.server.Timeouts.Connect, how)
	if err != nil {
		return v, err
	}
	greeting.Took += v.Took
	greeting.Steps = append(v.Steps, greeting.Steps...)
	if greeting.Era == spec.Unknown {
		// What looked like the older era may be no MCP at all.
		greeting.Reason = server.Both(&v, &greeting)
	}
	return greeting, nil
}

// began tells a person who waits what for.
func (p *prober) began(sent string) {
	if p.progress != nil {
		_, _ = output.Printf(p.progress, "%6.1fs  asking %s\n", time.Since(p.begun).Seconds(), sent) // it is a courtesy
	}
}
