package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/system"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/guard"
)

// wrapDrain bounds the end of wrap where the configuration says nothing. Clients
// (TypeScript's and Python's SDKs) send SIGTERM 2 s after they closed the input, and SIGKILL
// after 4 s: by then the server must have ended, but what it saves at its end may take as
// long as without mcpbridge.
const wrapDrain = 3500 * time.Millisecond

const wrapHelp = `Serves one server, given by its URL or its command, to the client that starts
mcpbridge: write it into a desktop client's configuration in front of what is
there. Every message may be of another revision.

Warnings go to standard error; with -v so does a line for each request, and what
the server writes to its own. The end of the input, SIGINT, SIGTERM or a closed
terminal (SIGHUP, unless it was ignored at the start, as by nohup) ends listen
streams with their result, waits for calls in flight and stops the command with
all that it started, within 3.5s unless MCPBRIDGE_DRAIN says otherwise: it gets
SIGTERM 2s after the end of the input, or when mcpbridge gets it. A second SIGINT
or SIGTERM ends the process at once. The command ends with it however it ends.

The command gets the environment of mcpbridge, which the client has chosen for
it, but for MCPBRIDGE_…, which sets configuration keys as for serve; the server is
called as its command is, or its host:
MCPBRIDGE_SERVERS__DOCS_EXAMPLE_COM__HEADERS__AUTHORIZATION is sent with every
request to docs.example.com.

The flags of wrap stand before the command, which needs no -- in front of it.

--install rewrites the configuration file of a desktop client, so that its servers,
or those named, run under wrap: claude (Claude Desktop), claude-code, vscode, cursor,
windsurf, cline, gemini, codex or zed. Everything else in the file stays as it is,
byte for byte. Servers that the client logs in to by OAuth are left alone. A copy of
the file as it was is kept beside it; --uninstall takes mcpbridge out again.

--install HOST --all moves them to a file of their own, which only you can read, and
writes one entry instead that serves all of them: the client sees their tools as
NAME__tool. Servers that the client asks the user something for, has disabled or has
in a sandbox stay. Repeat it to move servers that were added since.`

const wrapExample = `  mcpbridge wrap -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  mcpbridge wrap https://docs.example.com/mcp
  mcpbridge wrap --all ~/.cursor/mcp.json
  mcpbridge wrap team -c config.yaml
  mcpbridge wrap --install cursor --dry-run
  mcpbridge wrap --install vscode files git
  mcpbridge wrap --install claude --all
  mcpbridge wrap --uninstall vscode

  in a desktop client's configuration, before and after:
  "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/notes"]}
  "files": {"command": "mcpbridge", "args": ["wrap", "--",
            "npx", "-y", "@modelcontextprotocol/server-filesystem", "/notes"]}`

func newWrapCommand(p process) *cobra.Command {
	var in installing
	var from wrapSource
	var verbose bool
	cmd := &cobra.Command{
		Use:     "wrap URL | COMMAND ARGS... | GROUP -c FILE | --all FILE\n  mcpbridge wrap --install HOST [--all] [SERVER...]",
		Short:   "Serve one MCP server, or a group, on standard input and output",
		Long:    wrapHelp,
		Example: wrapExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.asked(cmd) {
				in.all = from.all
				return in.run(p, args)
			}
			if p.stdin != nil && output.IsTerminal(p.stdin) {
				return from.atTerminal(args)
			}
			c, name, err := p.wrapConfig(cmd, &from, args, verbose)
			if err != nil {
				return err
			}
			system.BoundMemory(c, system.WrapMemory, p.environ)
			w := &wrapping{process: p, config: c, log: output.NewLog(p.stderr, c.Log, p.secrets)}
			return w.run(cmd.Context(), name)
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log every request, too, and what the server writes to its standard error")
	cmd.Flags().String("log-level", "", "debug, info, warn or error (default warn; info with -v)")
	cmd.Flags().StringVarP(&from.path, "config", "c", "", "`FILE` in which the group, or the server, has the NAME")
	cmd.Flags().BoolVar(&from.all, "all", false, "serve all servers of a file as one; with --install, have one entry of all servers of the host")
	nameFlag(cmd)
	in.flags(cmd.Flags())
	completeHosts(cmd)
	return cmd
}

// A wrapSource is what flags say of what is served.
type wrapSource struct {
	path string // of -c
	all  bool
}

// options returns what is to be read, and the name of what is to be served of it: the one server
// that the arguments name, a server or a group of a file, or all servers of a file.
func (w *wrapSource) options(p process, cmd *cobra.Command, args []string) (o config.Options, name string, err error) {
	o = config.Options{Path: w.path, Environ: p.environ, Flags: cmd.Flags(), FlagKeys: flagKeys, OneUser: true, All: w.all}
	switch {
	case w.all:
		o.Path, err = configPath("wrap --all", w.path, args)
		return o, config.AllServers, err
	case w.path != "" && len(args) != 1:
		return o, "", usageError("want the NAME of one group or server of %s", w.path)
	case w.path != "":
		return o, args[0], nil
	}
	if o, err = p.oneServer(o, cmd, args); err != nil {
		return o, "", err
	}
	return o, o.Servers[0].Name, nil
}

// wrapConfig is the configuration of what the arguments name, and its name.
func (p process) wrapConfig(cmd *cobra.Command, from *wrapSource, args []string, verbose bool) (*config.Config, string, error) {
	o, name, err := from.options(p, cmd, args)
	if err != nil {
		return nil, "", err
	}
	c, err := p.loadStartable(cmd, o)
	if err != nil {
		return nil, "", err
	}
	if !sets(p.environ, "DRAIN") {
		c.Drain = wrapDrain
	}
	if !sets(p.environ, "DEBUG_ERRORS") {
		c.DebugErrors = true // the client is on this machine
	}
	if !verbose && !cmd.Flags().Changed("log-level") && !sets(p.environ, "LOG__LEVEL") {
		c.Log.Level = "warn"
	}
	one := c.Only(name)
	if one == nil {
		return nil, "", usageError("no group or server of %s is called %q; there are: %s", o.Path, name, strings.Join(c.Names(), ", "))
	}
	return one, name, nil
}

// atTerminal says what wrap is for to a person who types it.
func (w *wrapSource) atTerminal(args []string) error {
	server := "URL"
	if w.path != "" || w.all {
		return usageError("wrap is started by a desktop client, which writes messages to it; this is a terminal\nto see what is in the file, write: mcpbridge check FILE --connect\nto serve it to clients by a URL, write: mcpbridge serve FILE, with --all for all its servers as one")
	}
	if len(args) > 0 {
		server = args[0]
	}
	if len(args) > 0 && !strings.Contains(server, "://") {
		words := []string{"--"}
		for _, a := range args {
			words = append(words, output.ShellWord(a))
		}
		server = strings.Join(words, " ")
	}
	return usageError("wrap is started by a desktop client, which writes messages to it; this is a terminal\nto try the server, write: mcpbridge call %[1]s\nto serve it to clients by a URL, write: mcpbridge serve %[1]s", server)
}

// sets reports whether an environment sets a key at the top of the configuration.
func sets(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(entry string) bool {
		return strings.HasPrefix(strings.ToUpper(entry), layer.Prefix+name+"=")
	})
}

// A wrapping is one run of wrap.
type wrapping struct {
	process
	config *config.Config
	log    *slog.Logger
}

// run serves until the client or ctx ends it. Nothing of it is left when it returns.
func (w *wrapping) run(ctx context.Context, server string) error {
	// A client that is gone must not end the process by a signal, before the server's
	// command is ended: writes of the log fail, too.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	defer system.ReleaseMemory(w.environ)()

	out, ok := output.File(w.stdout)
	if w.stdin == nil || !ok {
		return errors.New("standard input and output are not files")
	}
	keep := guard.New(w.log)
	defer keep.Close() // after all that it minds
	observe, err := w.openObserving(ctx, w.config.Log, w.log)
	if err != nil { // the environment is the client's, which may have set it for itself
		w.log.Warn("there are no traces", "err", err)
	}
	w.observers, w.accessLog = observe.all, observe.access != nil
	g, err := gateway.New(*newOptions(w.config, true, w.process, w.log, keep))
	if err != nil {
		observe.close(ctx)
		return err
	}
	observe.count(g)
	g.Start()
	ready, notReady := context.WithCancel(ctx)
	defer hook.Inner(g).Ready(ready, w.log)()
	err = g.ServeStdio(ctx, w.stdin, out, server)
	notReady()
	w.log.Info("draining", "bound", w.config.Drain)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.Drain+killTime)
	defer cancel()
	if cerr := g.Shutdown(ctx); cerr != nil {
		err = errors.Join(err, fmt.Errorf("ending the server: %w", cerr))
	}
	observe.close(ctx)
	w.log.Info("stopped")
	return err
}
