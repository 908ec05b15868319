package main

import (
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

const serveHelp = `Serves the servers of a configuration, or one server given by its URL or
command; given nothing, a small notebook server that is built in. Each server
has an endpoint http://ADDRESS/mcp/NAME; one of the command line is called after
its package, script or host, or as --name says. A server that is down is retried while
the others are served.

The environment sets configuration keys too: MCPBRIDGE_LISTEN,
MCPBRIDGE_LIMITS__SESSIONS. Flags win over it, and it wins over the file.

SIGINT, SIGTERM and a closed terminal (SIGHUP, unless it was ignored at the
start, as by nohup) end listen streams with their result, wait for calls in
flight and stop commands, within the configured drain; a second SIGINT or
SIGTERM ends the process at once. Commands end with it however it ends.`

func newServeCommand(p process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "serve [-c FILE | URL | -- COMMAND ARGS...]",
		Short: "Serve MCP servers of any revision to clients of any revision",
		Long:  serveHelp,
		Example: `  mcpbridge serve
  mcpbridge serve -c config.yaml --listen 127.0.0.1:8000
  mcpbridge serve -c .vscode/mcp.json
  mcpbridge serve --name docs https://docs.example.com/mcp
  mcpbridge serve -- npx -y @modelcontextprotocol/server-filesystem ~/notes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := serveOptions(cmd, path, args, p.environ)
			if err == nil {
				err = rename(cmd, &o)
			}
			if err != nil {
				return err
			}
			c, warnings, err := loadConfig(o)
			warn(p.stderr, warnings)
			if err != nil {
				return err
			}
			d := &daemon{process: p, config: c, asJSON: asJSON}
			if d.screen = screenOf(p.stderr); d.screen != nil {
				d.stderr = d.screen // beside which nothing may write to the terminal
			}
			d.log = newLogger(d.stderr, c.Log)
			return d.run(cmd.Context())
		},
	}
	configFlags(cmd.Flags())
	nameFlag(cmd)
	cmd.Flags().StringVarP(&path, "config", "c", "", "YAML file, as config.example.yaml has it, or a desktop client's own")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the endpoints as JSON")
	return cmd
}

// serveOptions decides what is served: a file, a server named by the arguments,
// or the notebook.
func serveOptions(cmd *cobra.Command, path string, args, environ []string) (config.Options, error) {
	o := config.Options{Path: path, Environ: environ, Flags: cmd.Flags(), FlagKeys: flagKeys}
	switch dash := cmd.ArgsLenAtDash(); {
	case path != "" && len(args) > 0:
		return o, usageError("a file and a server are both given; write the server into %s, or leave -c out", path)
	case dash == 0 && len(args) > 0:
		o.Servers = []config.Server{{Name: commandName(args), Command: args[0], Args: args[1:]}}
	case len(args) == 1 && dash < 0:
		return urlServer(o, args[0])
	case len(args) > 0 || dash == 0:
		return o, usageError("want a URL, or -- and a command with its arguments; see %s --help", cmd.CommandPath())
	case path == "" && !slices.ContainsFunc(environ, namesServer):
		o.Servers = []config.Server{{Name: "notebook", Builtin: "notebook"}}
	}
	return o, nil
}

func namesServer(entry string) bool {
	return strings.HasPrefix(strings.ToUpper(entry), config.Prefix+"SERVERS__")
}

func urlServer(o config.Options, arg string) (config.Options, error) {
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" {
		return o, usageError("%q is neither a URL nor a command; write https://HOST/PATH, or -- and the command", arg)
	}
	o.Servers = []config.Server{{Name: hosts.Name(u.Hostname()), URL: arg}}
	return o, nil
}
