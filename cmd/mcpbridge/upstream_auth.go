package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// loginOptions say how a gateway logs in to servers.
func loginOptions(c *config.Config, environ []string) gateway.Logins {
	o := gateway.Logins{Files: !c.Keyring, ClientMetadataURL: c.ClientMetadataURL, AllowHosts: c.AllowHosts, Keys: c.LoginKeys}
	if dir := stateDir(c, environ); dir != "" {
		o.Dir, o.UserDir = filepath.Join(dir, "logins"), filepath.Join(dir, "user-logins")
	}
	return o
}

// onDemand has the only client of a gateway wait while a person logs in to its server, if
// the server wants that, and nothing else is configured. Where the person is led stands on
// standard error, too, which clients keep in a log. The error of browse is
// [login.ErrNoBrowser], or that of writing.
func onDemand(p process, o *config.Server) (auth *config.UpstreamAuth, browse func(url string) error) {
	if auth = o.UpstreamAuth; auth != nil && auth.OAuth != nil { // whose login it is, is who has started the program
		own := *auth.OAuth
		own.Principal, own.Per, own.SharedIdentity = "", "", true
		auth = &config.UpstreamAuth{OAuth: &own}
	}
	if auth == nil && o.URL != "" && !o.OverWebSocket() && !o.HasHeader("Authorization") {
		auth = &config.UpstreamAuth{OAuth: &config.StoredLogin{SharedIdentity: true}}
	}
	if auth == nil || auth.OAuth == nil {
		return auth, nil
	}
	return auth, func(url string) error {
		if _, err := output.Printf(p.stderr, "mcpbridge: %s wants a login; log in at this address:\n%s\n", o.Name, url); err != nil {
			return err
		}
		return login.Browser(environOf(p))(url)
	}
}

// takeToken reads the token of whoever types a command, for servers that are sent the token of
// each caller, or one that is issued in exchange for it.
func (t *target) takeToken() error {
	of, s := "", &t.config.Servers[0]
	for i := range t.config.Servers {
		switch a := t.config.Servers[i].UpstreamAuth; {
		case a != nil && a.Passthrough != nil:
			of, s = "passthrough", &t.config.Servers[i]
		case a != nil && a.TokenExchange != nil:
			of, s = "token_exchange", &t.config.Servers[i]
		}
	}
	switch {
	case of == "" && t.token == "":
		return nil
	case of == "":
		return usageError("%s is sent no token of callers; leave --token out, and for a URL write --header 'Authorization: Bearer …'", s.Name)
	case t.token == "":
		return usageError("the token of its caller is missing: %s has upstream_auth.%s; give yours with --token '${NAME}', of an environment variable, or --token '${file:PATH}'", s.Name, of)
	}
	from := value.Scope{Lookup: value.Environ(t.environ), Dir: "."}
	token, err := from.Expand(t.token)
	if err == nil && (token == "" || strings.ContainsFunc(token, unicode.IsSpace)) {
		err = errors.New("it is no token: it is empty, or has white space")
	}
	if err != nil {
		return usageError("--token: %v", err)
	}
	t.secrets.Learn(token)
	t.caller = token
	return nil
}

// authorize has requests to the servers of a configuration sent with the stored logins, if there
// are some: whoever types a command is who has logged in.
func (p process) authorize(ctx context.Context, c *config.Config) error {
	for i := range c.Servers {
		if err := p.authorizeOne(ctx, c, &c.Servers[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p process) authorizeOne(ctx context.Context, c *config.Config, s *config.Server) error {
	if s.URL == "" || s.HasHeader("Authorization") || s.UpstreamAuth != nil && s.UpstreamAuth.OAuth == nil {
		return nil
	}
	flow := hook.Flow(newOptions(c, false, p, slog.New(slog.DiscardHandler), nil), s.Name)
	server := s.Target()
	if c.File != "" {
		server = s.Name + " -c " + output.ShellWord(c.File)
	}
	value, err := flow.Stored(ctx, server)
	switch {
	case errors.Is(err, login.ErrNoLogin):
		return nil // the server may want none
	case err != nil:
		return fmt.Errorf("%s %w", s.Target(), err)
	}
	headers := map[string]string{"Authorization": value}
	maps.Copy(headers, s.Headers)
	s.Headers, s.UpstreamAuth = headers, nil
	p.learn(c)
	return nil
}
