package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
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
one line what works and how many limits there are, and then the revisions, the transport, how each question was answered and how long that
took, and what becomes of each feature on the way to clients of the other era,
and of each extension for clients of either, with the reason and the rule of the
translation. Last come the quirks of the server that were met: what it does against the
protocol, the sentence of the specification that this breaks, and what mcpbridge does.

A command is started with the environment of mcpbridge, and is ended again; it is
started anew only if it ends, or says nothing more, when it is asked. Nothing is called but lists. Credentials that are to
stay off the command line come from the environment, as for wrap:
MCPBRIDGE_SERVERS__DOCS_EXAMPLE_COM__HEADERS__AUTHORIZATION.

--as CLIENT sends what that client sends up to its first list of tools instead, with
its headers, directly and through mcpbridge, and says what is refused and why. What
clients send is known from published code and reports; --as all plays each in turn.

Exit codes: 0 the server answered; 1 no MCP server answered, and why, or, with --as,
mcpbridge refuses what the server takes; 2 wrong usage.`

func newProbeCommand(p process) *cobra.Command {
	var headers []string
	var as string
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "probe URL | -- COMMAND ARGS...",
		Short: "Find out what a server is, and what of it clients of the other era get",
		Long:  probeLong,
		Example: `  mcpbridge probe https://docs.example.com/mcp -H "Authorization: Bearer $DOCS_TOKEN"
  mcpbridge probe -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  mcpbridge probe --json http://127.0.0.1:3000/mcp | jq -r '.crossings[] | select(.outcome == "refused").feature'
  mcpbridge probe http://127.0.0.1:3000/mcp --as claude-code
  mcpbridge probe --as all -- npx -y @modelcontextprotocol/server-everything`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var players []clients.Client
			if as != "" {
				var err error
				if players, err = clients.Select(as); err != nil {
					return &exitError{exitUsage, err}
				}
			}
			pr, err := newProber(p, cmd, args, headers, timeout)
			if err == nil && !asJSON { // which says that, too, and how long it took
				err = p.startable(cmd, []config.Server{*pr.server})
			}
			if err != nil {
				return err
			}
			defer pr.keep.Close() // after all that it minds
			if as != "" {
				return pr.playAs(cmd.Context(), cmd.OutOrStdout(), players, asJSON)
			}
			return pr.run(cmd.Context(), cmd.OutOrStdout(), asJSON)
		},
	}
	nameFlag(cmd)
	fs := cmd.Flags()
	fs.StringArrayVarP(&headers, "header", "H", nil, "`NAME: VALUE` to send to a URL; may be repeated")
	fs.DurationVar(&timeout, "timeout", 0, "bound of each question (default timeouts.connect: 10s for a URL, 60s for a command)")
	fs.StringVar(&as, "as", "", "play the opening of `CLIENT` instead, as of claude-code, or of all that are known")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
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

// newProber reads the one server that the arguments name.
func newProber(p process, cmd *cobra.Command, args, headers []string, timeout time.Duration) (*prober, error) {
	if cmd.ArgsLenAtDash() == 0 && len(headers) > 0 {
		return nil, usageError("a command gets no headers; leave --header out, or give a URL")
	}
	o, err := p.oneServer(config.Options{Environ: p.environ}, cmd, args)
	if err != nil {
		return nil, err
	}
	named := &o.Servers[0]
	if named.Headers, err = readHeaders(headers); err != nil {
		return nil, err
	}
	if timeout < 0 {
		return nil, usageError("--timeout %v is negative; leave it out for 10s (a URL) or 60s (a command)", timeout)
	}
	c, err := p.load(o)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(c.Servers, func(s config.Server) bool { return s.Name == named.Name })
	server := &c.Servers[at]
	if timeout > 0 {
		server.Timeouts.Connect, server.Timeouts.Request = timeout, timeout
	}
	log := slog.New(slog.DiscardHandler)
	one := *c
	one.Servers = []config.Server{*server}
	pr := &prober{process: p, config: &one, server: &one.Servers[0], begun: time.Now(), keep: guard.New(log)}
	if err = p.authorize(cmd.Context(), pr.config); err != nil {
		return nil, err
	}
	if pr.options, pr.upstream, err = p.reach(pr.config, pr.keep); err != nil {
		return nil, err
	}
	if output.IsTerminal(p.stderr) {
		pr.progress = p.stderr
	}
	return pr, nil
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

func (p *prober) run(ctx context.Context, out io.Writer, asJSON bool) error {
	v, err := p.examine(ctx)
	p.upstream.Close()
	if err != nil {
		return err
	}
	r := report.New(p.upstream, p.server, v)
	out = p.secrets.Writer(out)
	if asJSON {
		err = output.JSON(out, r)
	} else {
		err = r.Print(out)
	}
	if err == nil && v.Era == spec.Unknown {
		err = noServer(p.upstream, &v, p.server)
	}
	return err
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
		greeting.Reason = v.Reason + "; opening a session failed: " + greeting.Reason
	}
	return greeting, nil
}

// began tells a person who waits what for.
func (p *prober) began(sent string) {
	if p.progress != nil {
		_, _ = output.Printf(p.progress, "%6.1fs  asking %s\n", time.Since(p.begun).Seconds(), sent) // it is a courtesy
	}
}
