package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// startable returns why the command that was given on the command line can't be started,
// with what to type instead; nil if it can, as far as that can be said before.
func (p process) startable(cmd *cobra.Command, given []config.Server) error {
	if len(given) == 0 || given[0].Command == "" {
		return nil
	}
	program, args := given[0].Command, given[0].Args
	_, err := exec.LookPath(program)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot):
		return nil
	case strings.ContainsAny(program, " \t"):
		words := append(strings.Fields(program), args...)
		return usageError("the command and its arguments have to be separate words; write: %s", commandLine(cmd, ownWords(cmd, p.args), words))
	}
	return fmt.Errorf("can't start %q: %s", program, whyNot(err))
}

// loadStartable is load for a configuration whose command line names what can be started.
func (p process) loadStartable(cmd *cobra.Command, o config.Options) (*config.Config, error) {
	c, err := p.load(o)
	if err != nil {
		return nil, err
	}
	return c, p.startable(cmd, o.Servers)
}

// whyNot says why a program can't be run, and what to do.
func whyNot(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "there is no such program in PATH; install it, or give its whole path"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file; give the path of a program that can be run"
	case errors.Is(err, fs.ErrPermission):
		return "it is not a program that may be run; make it executable, or give the program that runs it, such as node or python"
	}
	return err.Error()
}

// ownWords are the words between the name of one of our commands and --.
func ownWords(cmd *cobra.Command, typed []string) []string {
	for i, w := range typed {
		if w != cmd.Name() {
			continue
		}
		for j, w := range typed[i+1:] {
			if w == "--" {
				return typed[i+1 : i+1+j]
			}
		}
	}
	return nil
}
