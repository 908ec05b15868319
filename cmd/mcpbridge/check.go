package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

func newCheckCommand(p process) *cobra.Command {
	var path string
	var asJSON, connect, long bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration and say what would be served",
		Long: `Reads a configuration as serve does, environment included, and prints what
would be served, credentials masked, with the names of the variables that commands
get, or every mistake with its line; with --json each is an object with file, line,
column, key, what and next. Nothing is started or dialled without --connect, which asks every server as serve does.
FILE may be a desktop client's own: .vscode/mcp.json.

With replicas, --connect also asks the engine who lives, and each of those whether
it accepts this configuration and is accepted: it says which have other keys, a
clock more than 5 s apart, or TLS where the other has none. Ask so on a machine
that reaches them, before another replica starts with a changed configuration.

Exit codes: 0 the configuration can be used; 1 a server, the engine or a replica
did not answer, or does not accept it; 2 it can't.`,
		Example: `  mcpbridge check config.yaml
  mcpbridge check ~/.config/Claude/claude_desktop_config.json --json
  mcpbridge check /etc/mcpbridge/config.yaml --connect`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := configPath("check", path, args)
			if err != nil {
				return err
			}
			c, warnings, err := loadConfig(config.Options{Path: path, Environ: p.environ})
			warn(p.stderr, warnings)
			switch {
			case err != nil && asJSON:
				return cmp.Or(report.PrintMistakes(p.stdout, path, err, warnings), err)
			case err != nil:
				return err
			}
			p.learn(c)
			return p.check(cmd.Context(), c, path, warnings, asJSON, connect, long)
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", "", "the file to check")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	longFlag(cmd.Flags(), &long)
	cmd.Flags().BoolVar(&connect, "connect", false, "ask every server whether it is there, and the replicas whether they accept this configuration")
	return cmd
}

// check prints what would be served, and how those answered that are asked.
func (p process) check(ctx context.Context, c *config.Config, path string, warnings []config.Problem, asJSON, connect, long bool) (err error) {
	sum := report.NewSummary(c, p.envNames)
	sum.Warnings = report.Problems(warnings)
	if !asJSON { // before it is waited for anybody
		t := output.NewTable(p.stdout, long)
		sum.Print(t, path)
		if err = t.Flush(); err != nil {
			return err
		}
	}
	if connect {
		sum.Connect, err = p.connect(ctx, c, sum.Replicas)
	}
	switch {
	case err != nil:
		return err
	case asJSON:
		err = output.JSON(p.stdout, sum)
	case connect:
		t := output.NewTable(p.stdout, long)
		sum.Connect.Print(p.secrets.Writer(t))
		err = t.Flush()
	}
	if err == nil && connect {
		err = sum.Connect.Err()
	}
	return err
}

// flagKeys names the key that each flag of serve sets.
var flagKeys = map[string]string{"listen": "listen", "admin": "admin", "log-level": "log.level"}

// loadConfig loads a configuration; a mistake in it is wrong usage.
func loadConfig(o config.Options) (*config.Config, []config.Problem, error) {
	c, warnings, err := config.Load(o)
	if err != nil {
		return nil, warnings, &exitError{exitUsage, err}
	}
	return c, warnings, nil
}

// load loads a configuration, shows its warnings, and knows its secrets from then on.
func (p process) load(o config.Options) (*config.Config, error) {
	c, warnings, err := loadConfig(o)
	warn(p.stderr, warnings)
	if err != nil {
		return nil, err
	}
	p.learn(c)
	return c, nil
}

// envNames returns the names of the variables that the command of a server gets; nil for a
// server without one.
func (p process) envNames(c *config.Config, s *config.Server) []string {
	if s.Command == "" {
		return nil
	}
	var names []string
	for _, entry := range (transport.CommandOptions{Environ: p.environ, Env: c.EnvOf(s, p.environ)}).ChildEnv() {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	names = append(names, transport.MarkVar)
	slices.Sort(names)
	return slices.Compact(names)
}

// learn has the secrets of a configuration known, and of the environment those by name.
func (p process) learn(c *config.Config) {
	p.secrets.Learn(c.Secrets()...)
	p.secrets.Learn(value.SecretsInEnviron(p.environ)...)
}

func configFlags(fs *pflag.FlagSet) {
	fs.String("listen", "", "host:port of the endpoints (default 127.0.0.1:2526)")
	fs.String("admin", "", "host:port of the admin page, /metrics, /healthz and /readyz, or unix: and the path of a socket, or off (default 127.0.0.1:2527)")
	fs.String("log-level", "", "debug, info, warn or error (default info)")
}

func warn(w io.Writer, warnings []config.Problem) {
	for _, p := range warnings {
		_, _ = output.Printf(w, "mcpbridge: warning: %s\n", p) // nowhere else to say it
	}
}
