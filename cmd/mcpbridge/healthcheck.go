package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/console"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// healthTime is how long a healthcheck takes at most by default.
const healthTime = 5 * time.Second

func newHealthcheckCommand(p process) *cobra.Command {
	var path string
	var ready bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck [FILE]",
		Short: "Ask a running mcpbridge whether it is well",
		Long: `Asks the admin address of a configuration, as serve reads it, environment
included: /healthz, which answers while the process serves, or with --ready
/readyz, which says whether it wants requests: not while it starts or ends. For
containers, which may have no other program to ask with.

Exit codes: 0 it is; 1 it is not, or does not answer; 2 the command line or the
configuration is wrong.`,
		Example: `  mcpbridge healthcheck
  mcpbridge healthcheck /etc/mcpbridge/config.yaml --ready
  mcpbridge healthcheck --admin unix:/run/mcpbridge/admin.sock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := p.adminAddress(cmd, path, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			asked := "/healthz"
			if ready {
				asked = "/readyz"
			}
			status, err := console.Ask(ctx, a, asked)
			if err == nil {
				_, err = output.Printf(p.stdout, "%s\n", output.Block(status))
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", "", "the file that serve was given")
	cmd.Flags().String("admin", "", "host:port of the admin address, or unix: and the path of its socket (default 127.0.0.1:2527)")
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it wants requests")
	cmd.Flags().DurationVar(&timeout, "timeout", healthTime, "how long it may take")
	return cmd
}

// adminAddress finds out where the admin address is that serve would take.
func (p process) adminAddress(cmd *cobra.Command, path string, args []string) (console.Address, error) {
	for _, file := range args {
		if path != "" {
			return console.Address{}, usageError("one file is enough; leave %q out", file)
		}
		path = file
	}
	_, a, err := p.ofServe(cmd, path)
	return a, err
}

// ofServe returns the configuration that serve would read, and its admin address.
func (p process) ofServe(cmd *cobra.Command, path string) (c *config.Config, a console.Address, err error) {
	o, err := p.serveOptions(cmd, path, nil)
	if err != nil {
		return nil, a, err
	}
	o.MayMakeToken = true // as serve does at a terminal; no client is asked here
	if c, _, err = loadConfig(o); err != nil {
		return nil, a, err
	}
	p.learn(c)
	a, err = addressOf(c)
	return c, a, err
}

func addressOf(c *config.Config) (a console.Address, err error) {
	switch {
	case c.Admin == "":
		return a, usageError("admin is off; set it to an address, as in 127.0.0.1:2527")
	case c.AdminSocket() != "":
		a.Socket = c.AdminSocket()
		return a, nil
	}
	a.URL = report.AdminURL(c, c.Admin)
	if c.AdminTLS() {
		a.Cert = c.TLS.Files().Cert
	}
	return a, nil
}
