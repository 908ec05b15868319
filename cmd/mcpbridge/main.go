// Command mcpbridge is a gateway between two eras of the Model Context
// Protocol: it serves servers of one era to clients of the other.
//
// The package ties the pieces to a configuration and a terminal. Everything
// that reads flags, the environment, files or signals is here or in
// internal/config; nothing below knows of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/reload"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// Exit codes, as the help texts have them.
const (
	exitFailure = 1 // what was asked could not be done
	exitUsage   = 2 // the command line or the configuration is wrong
	exitLost    = 3 // listen: the stream broke off
)

func main() {
	ctx, stop, hangups := untilSignal()
	// The first signal asks; after it the default action is back, so that the
	// second ends the process at once.
	context.AfterFunc(ctx, stop)
	p := process{args: os.Args, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, hangups: hangups}
	os.Exit(exitCode(p.run(ctx), os.Stderr))
}

// untilSignal returns a context that ends with the first signal that asks the process to
// end. A closed terminal is one, unless the process was started to outlive it (nohup); see
// [reload.Hangups].
func untilSignal() (ctx context.Context, stop context.CancelFunc, hangups *reload.Hangups) {
	ctx, end := context.WithCancel(context.Background())
	hangups = reload.CatchHangups(end)
	ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	return ctx, stop, hangups
}

// A process is what a program is given when it starts.
type process struct {
	args, environ  []string
	stdin          *os.File // may be nil
	stdout, stderr io.Writer
	hangups        *reload.Hangups // nil for none
	// carried is what servers go on with after a reload; nil where there is none.
	carried *reload.Carried
	// secrets is set by run, and learns what the configuration has of them.
	secrets *redact.Redactor
	// upstream is how a gateway reaches servers.
	upstream upstream
	// observers are told of requests; nil tells nobody.
	observers *trace.Observers
	// dialed is told of attempts to open a WebSocket to a server; it may be nil.
	dialed    func(error)
	accessLog bool // one of them is the access log
	// caller is the token of whoever types a command; empty for none. listed is told of each
	// definition of a tool, as the server said it; it may be nil.
	caller string
	listed func(definition []byte)
	// lines keep what commands write to their standard error, for the admin page; nil for nothing.
	lines *live.Lines
}

// run runs the command that the arguments name until it is done or ctx is. No secret of
// the configuration is in its error, nor in what it says of a panic.
func (p process) run(ctx context.Context) (err error) {
	p.secrets = redact.New()
	p.stdout, p.stderr = output.For(p.stdout, p.environ), output.For(p.stderr, p.environ)
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		if err != nil {
			err = &secretlessError{err, p.secrets.String(err.Error())}
		}
	}()
	return p.execute(ctx)
}

// A secretlessError is an error without the secrets in its text.
type secretlessError struct {
	err  error
	text string
}

func (e *secretlessError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *secretlessError) Unwrap() error { return e.err }

func (p process) execute(ctx context.Context) error {
	p.args = dashed(p.args, newWrapCommand(p).Flags())
	root := p.commands()
	root.SetArgs(p.args[1:])
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	if _, _, unknown := root.Find(p.args[1:]); err != nil && unknown != nil {
		return unknownCommand(root, p.args[1:], err)
	}
	return err
}

// unknownCommand says which command may have been meant.
func unknownCommand(root *cobra.Command, typed []string, err error) error {
	for _, word := range typed {
		if c, _, _ := root.Find([]string{word}); strings.HasPrefix(word, "-") || c != nil && c != root {
			continue
		}
		if near := root.SuggestionsFor(word); len(near) > 0 {
			return usageError("unknown command %q; did you mean %s?", word, near[0])
		}
		return usageError("unknown command %q; see mcpbridge --help", word)
	}
	return usageError("%v", err)
}

// noArguments is for commands that take flags alone.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no arguments; leave %q out", cmd.Name(), args[0])
	}
	return nil
}

// commands returns the program's command, with all others below it.
func (p process) commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcpbridge",
		Short: "A gateway between two eras of the Model Context Protocol",
		Long: `mcpbridge stands between MCP clients and servers of two eras: servers of
sessions (revisions 2024-11-05 to 2025-11-25) work with stateless clients
(2026-07-28), and the other way round, live change notifications included.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 listen lost
its stream.`,
		Example: `  mcpbridge serve
  mcpbridge serve config.yaml
  mcpbridge wrap -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  mcpbridge wrap --install cursor
  mcpbridge import vscode > config.yaml
  mcpbridge probe https://docs.example.com/mcp
  mcpbridge listen http://127.0.0.1:2526/mcp/notebook --resource note://todo
  mcpbridge call http://127.0.0.1:2526/mcp/notebook edit_note name=todo text="buy milk"`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = versionLines()
	root.SetFlagErrorFunc(p.flagError)
	root.AddCommand(newServeCommand(p), newWrapCommand(p), newCheckCommand(p), newImportCommand(p), newProbeCommand(p), newListenCommand(p), newCallCommand(p),
		newReadCommand(p), newPromptCommand(p), newListCommand(p), newLoginCommand(p), newLogoutCommand(p), newPinCommand(p), newTokenCommand(), newHealthcheckCommand(p), newAdminCommand(p), newTailCommand(p), newTopCommand(p), newSchemaCommand(p), newVersionCommand())
	addMan(root)
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		c.Args = func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("completion: %q is no shell that it knows; name bash, fish, powershell or zsh", args[0])
			}
			return nil
		}
	}
	return root
}

// self is how to call this program again, as people would type it.
func (p process) self() string {
	if strings.Contains(filepath.ToSlash(p.args[0]), "/go-build") {
		return "go run ./cmd/mcpbridge"
	}
	return output.ShellWord(p.args[0])
}

// An exitError ends the process with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns what went wrong.
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode tells people of err and returns the code to exit with.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		line = strings.TrimPrefix(line, "mcpbridge: ")                      // as errors of package gateway begin
		_, _ = output.Printf(stderr, "mcpbridge: %s\n", output.Block(line)) // nowhere else to say it
	}
	if e := (*exitError)(nil); errors.As(err, &e) {
		return e.code
	}
	return exitFailure
}
