package main

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/reload"
	"github.com/mcpbridge/mcpbridge/internal/argv"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

const serveHelp = `Serves the servers of a configuration, or one server given by its URL or
command; given nothing, a small notebook server that is built in. Each server
has an endpoint http://ADDRESS/mcp/NAME; one of the command line is called after
its package, script or host, or as --name says. Groups of FILE have endpoints, too;
--all makes one of all its servers, at http://ADDRESS/mcp. A server that is down is retried while
the others are served.

The environment sets configuration keys too: MCPBRIDGE_LISTEN,
MCPBRIDGE_LIMITS__SESSIONS. Flags win over it, and it wins over the file. COMMAND gets
its other variables, too; commands of FILE get a minimal environment and, with
inherit_env, what ${…} does not refer to.

A changed FILE is reloaded, server by server; so it is by POST /reload at the
admin address, and by SIGHUP. A mistake in it changes nothing.

SIGINT, SIGTERM and a closed terminal (SIGHUP, unless it was ignored at the
start, as by nohup) end listen streams with their result, wait for calls in
flight and stop commands, within the configured drain; a second SIGINT or
SIGTERM ends the process at once. Commands end with it however it ends.`

func newServeCommand(p process) *cobra.Command {
	var path string
	var asJSON, watch, all bool
	cmd := &cobra.Command{
		Use:   "serve [FILE | --all FILE | URL | -- COMMAND ARGS...]",
		Short: "Serve MCP servers of any revision to clients of any revision",
		Long:  serveHelp,
		Example: `  mcpbridge serve
  mcpbridge serve config.yaml --listen 127.0.0.1:8000
  mcpbridge serve .vscode/mcp.json
  mcpbridge serve --all .vscode/mcp.json
  mcpbridge serve --name docs https://docs.example.com/mcp
  mcpbridge serve -- npx -y @modelcontextprotocol/server-filesystem ~/notes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := p.servedOptions(cmd, path, args, all)
			if err != nil {
				return err
			}
			c, err := p.loadStartable(cmd, o)
			if err != nil {
				return err
			}
			d := &daemon{process: p, config: c, asJSON: asJSON, token: makeToken(c)}
			d.source, d.watches, d.seen = o, watch, reload.Look(c.Files())
			if d.screen = output.ScreenOf(p.stderr); d.screen != nil {
				d.stderr = d.screen // beside which nothing may write to the terminal
			}
			d.level.Set(output.LogLevel(c.Log.Level))
			log, done := output.NewGatheredLog(&d.level, d.stderr, c.Log, p.secrets)
			defer done()
			defer context.AfterFunc(cmd.Context(), done)() // a second signal ends the process at once
			d.log = log
			return d.run(cmd.Context())
		},
	}
	configFlags(cmd.Flags())
	nameFlag(cmd)
	cmd.Flags().StringVarP(&path, "config", "c", "", "YAML file, as config.example.yaml has it, or a desktop client's own")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the endpoints as JSON")
	cmd.Flags().BoolVar(&all, "all", false, "serve all servers of FILE as one, too, at /mcp")
	cmd.Flags().BoolVar(&watch, "watch", true, "reload the configuration when its files change")
	return cmd
}

// servedOptions is serveOptions for serve, which may serve all servers of a file as one.
func (p process) servedOptions(cmd *cobra.Command, path string, args []string, all bool) (config.Options, error) {
	o, err := p.serveOptions(cmd, path, args)
	if o.All = all; all && err == nil && o.Path == "" {
		err = usageError("--all serves the servers of a file as one; which file? Write serve --all FILE")
	}
	if err == nil {
		err = rename(cmd, &o)
	}
	o.MayMakeToken = output.IsTerminal(p.stderr)
	return o, err
}

// serveOptions decides what is served: a file, a server named by the arguments,
// or the notebook.
func (p process) serveOptions(cmd *cobra.Command, path string, args []string) (config.Options, error) {
	o := config.Options{Path: path, Environ: p.environ, Flags: cmd.Flags(), FlagKeys: flagKeys}
	switch dash := cmd.ArgsLenAtDash(); {
	case path != "" && len(args) > 0:
		return o, usageError("a file and a server are both given; write the server into %s, or leave -c out", path)
	case len(args) == 1 && dash < 0 && looksLikeFile(args[0]) && existingFile(args[0]):
		o.Path = args[0]
	case len(args) > 0:
		return p.oneServer(o, cmd, args)
	case dash == 0:
		return o, wantServer(cmd)
	case path == "" && !slices.ContainsFunc(p.environ, namesServer):
		o.Servers = []config.Server{{Name: "notebook", Builtin: "notebook"}}
	}
	return o, nil
}

// oneServer reads the one server that the arguments name: a URL, or -- and a command.
func (p process) oneServer(o config.Options, cmd *cobra.Command, args []string) (config.Options, error) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 0 && len(args) > 0:
		o.Servers = []config.Server{{Name: argv.Name(args), Command: args[0], Args: args[1:], InheritEnv: true}}
		return o, rename(cmd, &o)
	case len(args) == 1 && dash < 0:
		o, err := p.urlServer(o, cmd, args[0])
		return o, errors.Join(err, rename(cmd, &o))
	case len(args) > 1 && dash < 0:
		return o, notAServer(cmd, p.args, args[0])
	}
	return o, wantServer(cmd)
}

func wantServer(cmd *cobra.Command) error {
	return usageError("want a URL, or -- and a command with its arguments; see %s --help", cmd.CommandPath())
}

func namesServer(entry string) bool {
	return strings.HasPrefix(strings.ToUpper(entry), layer.Prefix+"SERVERS__")
}

func (p process) urlServer(o config.Options, cmd *cobra.Command, arg string) (config.Options, error) {
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" {
		return o, notAServer(cmd, p.args, arg)
	}
	o.Servers = []config.Server{{Name: hostfile.Name(u.Hostname()), URL: arg}}
	return o, nil
}
