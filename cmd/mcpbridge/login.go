package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/console"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

const loginHelp = `Logs in to a server that demands it (OAuth): finds out who issues its tokens, leads
a browser there, and stores the tokens for wrap, and for serve where the server has
upstream_auth: {oauth: …}. They are refreshed when they expire.

The browser returns to a port of this machine: one of three that belong to the
server, or --port. If it runs on another machine, the address that it was led to
can be pasted here instead. BROWSER names another browser; --no-browser starts
none.

mcpbridge is known to the authorization server by --client-id, or by the document
in client_metadata_url, or it registers itself. A client that you register by hand
has to have the redirect URIs of all three ports, which an error tells; it is kept
with the login. --redirect-host localhost is for authorization servers that know
no 127.0.0.1. Tokens are kept in the system's
keyring, or, where there is none or MCPBRIDGE_KEYRING is false, in files below
state_dir that only you can read. docs/login.md has more.`

// A loginFlags are those of login.
type loginFlags struct {
	target
	issuer, client string
	scopes         []string
	port           int
	host           string
	noBrowser      bool
	json           bool // of logout
}

func newLoginCommand(p process) *cobra.Command {
	l := loginFlags{target: target{process: p}}
	cmd := &cobra.Command{
		Use:   "login URL | NAME -c FILE",
		Short: "Log in to a server, and store the login",
		Long:  loginHelp,
		Example: `  mcpbridge login https://docs.example.com/mcp
  mcpbridge login docs -c config.yaml --no-browser
  mcpbridge login https://docs.internal/mcp --cacert ca.pem
  mcpbridge login https://docs.example.com/mcp --scope files:read --scope files:write`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.readLogin(cmd, args); err != nil {
				return err
			}
			return l.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&l.path, "config", "c", "", "file in which the server has the NAME")
	fs.StringArrayVar(&l.scopes, "scope", nil, "`SCOPE` to ask for, besides those that the server names; may be repeated")
	fs.StringVar(&l.client, "client-id", "", "`ID` of a client that was registered by hand")
	fs.StringVar(&l.issuer, "issuer", "", "`URL` of the authorization server to use, if the server names several")
	fs.IntVar(&l.port, "port", 0, "port of this machine to which the browser returns (default one of three that belong to the server)")
	fs.StringVar(&l.host, "redirect-host", "", "`HOST` in the address to which the browser returns: 127.0.0.1 or localhost (default that of the last login, or 127.0.0.1)")
	certificateFlags(fs, &l.tls)
	fs.BoolVar(&l.noBrowser, "no-browser", false, "start no browser, print the address only")
	return cmd
}

func newLogoutCommand(p process) *cobra.Command {
	l := loginFlags{target: target{process: p}}
	of := console.Logout{Out: p.stdout}
	cmd := &cobra.Command{
		Use:   "logout URL | NAME -c FILE | --principal PRINCIPAL [NAME]",
		Short: "Revoke and delete a stored login",
		Long: `Has the authorization server revoke the tokens of a login, if it can do that, and
deletes them. Processes that use the login notice within two seconds, and send no
request with it any more.

With --principal it ends the logins that a user of a running gateway has made at its
servers (upstream_auth: {oauth: {per: principal}}), or that at one of them. It asks
the admin address, as mcpbridge top does.`,
		Example: `  mcpbridge logout https://docs.example.com/mcp
  mcpbridge logout --principal "https://id.example.com ada" -c config.yaml
  mcpbridge logout --principal "https://id.example.com ada" docs --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if of.Principal != "" {
				return l.logoutOf(cmd, args, &of)
			}
			l.json = of.JSON
			l.path, _ = cmd.Flags().GetString("config")
			if err := l.readLogin(cmd, args); err != nil {
				return err
			}
			return l.logout(cmd.Context())
		},
	}
	consoleFlags(cmd)
	cmd.Flags().StringVar(&of.Principal, "principal", "", "the `PRINCIPAL` whose logins at servers are ended, as in the audit log")
	cmd.Flags().BoolVar(&of.JSON, "json", false, "print what was ended as JSON")
	return cmd
}

// logoutOf ends the logins of a principal at a running gateway.
func (l *loginFlags) logoutOf(cmd *cobra.Command, args []string, of *console.Logout) error {
	of.Servers = args
	a, err := l.console(cmd)
	if err != nil {
		return err
	}
	return a.EndLogins(cmd.Context(), of)
}

// readLogin finds out which server is meant. It has to be one that can be logged in to.
func (l *loginFlags) readLogin(cmd *cobra.Command, args []string) error {
	l.single = true
	if err := l.read(cmd, args); err != nil {
		return err
	}
	s := &l.config.Servers[0]
	switch {
	case l.port < 0 || l.port > 65535:
		return usageError("--port %d is no port; want one from 1 to 65535", l.port)
	case l.host != "" && l.host != "127.0.0.1" && l.host != "localhost":
		return usageError("--redirect-host %q: the browser can return to 127.0.0.1 or localhost only; write one of them", l.host)
	case len(l.words) > 0:
		return usageError("%q is one argument too many; name one server", l.words[0])
	case s.URL == "":
		return usageError("%s has no URL, and so no login; write its credentials into its env", s.Name)
	case s.UpstreamAuth != nil && s.UpstreamAuth.OAuth == nil:
		return usageError("%s gets its credentials otherwise, as its upstream_auth says; there is nothing to log in to", s.Name)
	}
	return nil
}

// flow returns what logs in to the server.
func (l *loginFlags) flow() *login.Flow {
	f := hook.Flow(newOptions(l.config, false, l.process, slog.New(slog.DiscardHandler), nil), l.config.Servers[0].Name)
	if l.client != "" {
		f.ClientID, f.ClientSecret = l.client, ""
	}
	if l.issuer != "" {
		f.Issuer = l.issuer
	}
	if l.port != 0 {
		f.Port = l.port
	}
	f.Host = l.host
	f.Scopes = append(f.Scopes, l.scopes...)
	return f
}

// run logs in.
func (l *loginFlags) run(ctx context.Context) error {
	f := l.flow()
	status, challenge, err := f.Ask(ctx)
	if err != nil {
		return fmt.Errorf("asking %s: %w; %s", l.name(), err, cmp.Or(transport.Advice(err), "check its URL, and that it runs"))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.Browse = l.browse
	f.Tell = func(text string) { _, _ = output.Printf(l.stderr, "Warning: %s\n", text) }
	if l.stdin != nil && output.IsTerminal(l.stdin) {
		f.Paste = login.Lines(ctx, l.stdin)
	}
	got, err := f.Run(ctx, challenge)
	if errors.Is(err, login.ErrNoIssuer) && login.LetIn(status) {
		_, err = output.Printf(l.stdout, "%s wants no login: it answers without one (HTTP %d), and does not say where to log in. Nothing was stored.\n", l.name(), status)
		return err
	}
	if err != nil {
		return fmt.Errorf("logging in to %s: %w", l.name(), err)
	}
	return l.report(got)
}

// browse tells the person where to log in, and opens the page.
func (l *loginFlags) browse(url string) error {
	if _, err := output.Printf(l.stdout, "Log in at this address:\n%s\n", url); err != nil || l.noBrowser {
		return err
	}
	if login.Browser(environOf(l.process))(url) != nil {
		_, err := output.Printf(l.stdout, "No browser could be started: open it yourself.\n")
		return err
	}
	return nil
}

func (l *loginFlags) report(got *login.Login) error {
	until := "until it is revoked"
	if !got.Token.Expires.IsZero() {
		until = "until " + got.Token.Expires.Format(time.DateTime)
	}
	if got.Token.RefreshToken != "" {
		until += ", and is refreshed then"
	}
	scopes := "those that the server chose"
	if len(got.Scopes) > 0 {
		scopes = strings.Join(got.Scopes, " ")
	}
	_, err := output.Printf(l.stdout, "Logged in to %s\n  issuer: %s\n  client: %s\n  scopes: %s\n  the token lasts %s\n", l.name(),
		got.Issuer, got.Client.ID, scopes, until)
	return err
}

func (l *loginFlags) logout(ctx context.Context) error {
	f := l.flow()
	revoked, err := login.Logout(ctx, f.HTTP, f.Store, f.URL)
	switch {
	case err != nil:
		if errors.Is(err, login.ErrNoLogin) {
			err = fmt.Errorf("%w; was it made by this user, for this URL?", err)
		}
		return fmt.Errorf("logging out of %s: %w", l.name(), err)
	case l.json:
		return output.JSON(l.stdout, console.NewLoggedOut(l.name(), revoked))
	case revoked != nil:
		_, err = output.Printf(l.stdout, "Deleted the login to %s; it was not revoked: %v\n", l.name(), revoked)
		return err
	}
	_, err = output.Printf(l.stdout, "Logged out of %s\n", l.name())
	return err
}
