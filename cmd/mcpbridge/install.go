package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
	"github.com/mcpbridge/mcpbridge/internal/remember"
)

// An installing puts mcpbridge into a host's configuration file, or takes it out.
type installing struct {
	install, uninstall string // the host
	file, binary       string
	dryRun             bool
	all                bool // one entry of all servers
}

func (in *installing) flags(fs *pflag.FlagSet) {
	fs.StringVar(&in.install, "install", "", "`HOST` whose configuration file is rewritten to run its servers under wrap")
	fs.StringVar(&in.uninstall, "uninstall", "", "`HOST` in whose configuration file that is undone")
	fs.StringVar(&in.file, "file", "", "the host's file (default where the host has it)")
	fs.StringVar(&in.binary, "binary", "", "the command to write into the file (default the path of this program)")
	fs.BoolVar(&in.dryRun, "dry-run", false, "print what would be changed as a diff, without secrets, and write nothing")
}

// completeHosts completes the hosts that a file may be of.
func completeHosts(cmd *cobra.Command) {
	var hosts []cobra.Completion
	for _, h := range hostfile.All {
		hosts = append(hosts, cobra.CompletionWithDesc(h.Name, h.Title))
	}
	for _, name := range []string{"install", "uninstall"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(hosts, cobra.ShellCompDirectiveNoFileComp)) // the flags are there
	}
}

// asked reports whether wrap is to change a file instead of serving.
func (in *installing) asked(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"install", "uninstall", "file", "binary", "dry-run"}, cmd.Flags().Changed)
}

func (in *installing) run(p process, servers []string) error {
	if (in.install == "") == (in.uninstall == "") {
		return usageError("want one of --install HOST and --uninstall HOST; see mcpbridge wrap --help")
	}
	host, err := hostNamed(in.install + in.uninstall)
	if err != nil {
		return err
	}
	edit := &hostfile.Edit{Host: host, Only: servers}
	if edit.Binary, err = in.program(); err != nil {
		return err
	}
	path, err := hostFile(host, in.file, p.environ)
	if err != nil {
		return err
	}
	c, f, err := in.edit(p, edit, path)
	for again := 0; errors.Is(err, install.ErrWritten) && again < installTries; again++ {
		c, f, err = in.edit(p, edit, path)
	}
	if err != nil {
		return err
	}
	if in.dryRun {
		return c.Preview(p.stdout, p.stderr, host, f, path)
	}
	return c.Say(p.stdout, host, f, path)
}

// installTries is how often an edit is made anew, if the host has written its file meanwhile.
const installTries = 10

// edit reads the host's file, and changes it, unless that is only asked about.
func (in *installing) edit(p process, edit *hostfile.Edit, path string) (c install.Change, f *install.File, err error) {
	if f, err = install.Open(path); err != nil {
		return c, f, err
	}
	if c, err = in.change(p, edit, f); err != nil {
		return c, f, usageError("%s: %w", path, install.Located(err))
	}
	if in.dryRun {
		return c, f, nil
	}
	if err = c.Apply(f); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, f, err
}

// change works out what becomes of the host's file.
func (in *installing) change(p process, edit *hostfile.Edit, f *install.File) (install.Change, error) {
	g := &install.Group{Group: hostfile.Group{Edit: edit, Machine: layer.ThisMachine(p.environ)}, Check: checkMoved(p)}
	g.Convert = func(data []byte, servers []string, nameMax int) ([]byte, map[string]string, error) {
		return convertMoved(g, data, servers, nameMax, p.environ)
	}
	state, ok := value.Environ(p.environ)(layer.Prefix + "STATE_DIR")
	if !ok {
		state = remember.StateDir(p.environ)
	}
	switch {
	case state == "" && in.all:
		return install.Change{}, errors.New("there is no folder to move the servers to; set " + layer.Prefix + "STATE_DIR, or HOME")
	case state == "" && in.uninstall != "":
		return install.Unwrap(edit, f)
	case !in.all && in.uninstall == "":
		return install.Wrap(edit, f)
	}
	if err := install.OpenGroup(g, f, state); err != nil {
		return install.Change{}, err
	}
	if in.uninstall != "" {
		return g.Scatter()
	}
	return g.Gather()
}

// convertMoved returns the configuration of servers that are moved out of a host's file, and what
// is different of each there.
func convertMoved(g *install.Group, data []byte, servers []string, nameMax int, environ []string) ([]byte, map[string]string, error) {
	text, called, notes, err := config.Moved(g.Host, g.Path, data, servers, nameMax, environ)
	if err != nil {
		return nil, nil, err
	}
	about := make(map[string]string)
	for i, name := range g.Host.InOrder(data, servers) {
		var all []string
		for _, n := range notes {
			if len(n.Path) > 1 && n.Path[1] == called[i] {
				all = append(all, strings.Join(append(slices.Clone(n.Path[2:]), n.Text), ": "))
			}
		}
		about[name] = strings.Join(all, "; ")
	}
	return text, about, nil
}

// checkMoved returns what finds out whether wrap could serve a configuration.
func checkMoved(p process) func(text []byte) (wrong, leftOut string, err error) {
	return func(text []byte) (wrong, leftOut string, err error) {
		f, err := os.CreateTemp("", "mcpbridge-*.yaml") // with mode 0600
		if err != nil {
			return "", "", fmt.Errorf("checking what is moved: %w", err)
		}
		defer func() { _ = os.Remove(f.Name()) }() // nobody knows of it
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", "", fmt.Errorf("checking what is moved: %w", err)
		}
		_, warnings, err := config.Load(config.Options{Path: f.Name(), Environ: p.environ, OneUser: true, All: true})
		for _, w := range warnings {
			if strings.HasPrefix(w.Key, "groups.") {
				leftOut = w.Message
			}
		}
		if e := (*config.Error)(nil); errors.As(err, &e) {
			return e.Problems[0].Message, leftOut, nil
		}
		return "", leftOut, err
	}
}

// program is the command that the host is to start.
func (in *installing) program() (string, error) {
	if in.binary != "" {
		return in.binary, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w; name it with --binary", err)
	}
	if strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "", usageError("go run leaves no program that the host could start; build one, as in go build -o ~/bin/mcpbridge ./cmd/mcpbridge, or name it with --binary")
	}
	return path, nil
}
