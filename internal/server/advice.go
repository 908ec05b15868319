package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Advice returns what to do about a server whose era was not found.
func (s *Server) Advice(v *mcp.Verdict) string { return advice(v, &s.opts) }

func advice(v *mcp.Verdict, o *Options) string {
	var credential *upstream.CredentialError
	if errors.As(v.Cause, &credential) {
		return credential.Step
	}
	if way := transport.Advice(v.Cause); way != "" {
		return way
	}
	switch {
	case isAway(v):
		return "" // the reason has it
	case o.isCommand():
		return commandAdvice(v.Cause, o)
	case v.Status == 401, v.Status == 403:
		return credentialAdvice(v, o)
	case v.Status >= 300:
		return statusAdvice(v.Status, o)
	case o.overWebSocket() && v.Status >= 200:
		return "is the path right? If it has only Streamable HTTP, use a URL with http:// or https://"
	case errors.Is(v.Cause, context.DeadlineExceeded):
		return "is it an MCP server? If it is slow, give it more time: --timeout 1m"
	case v.Inconclusive && strings.HasPrefix(o.URL, "http://"):
		return "it closes the connection: is it an MCP server, and does it need https://?"
	}
	return "is it an MCP server, and the path right? Many servers are at /mcp"
}

// nextStep returns what to do if serve has no verdict, or "" if the reason says it.
func nextStep(v *mcp.Verdict, o *Options) string {
	switch {
	case v.Status == 401, v.Status == 403:
		return strings.TrimPrefix((&upstream.StatusError{Code: v.Status}).Advice(), "; ")
	case v.Status >= 300 && v.Status <= 399:
		return ""
	case errors.Is(v.Cause, context.DeadlineExceeded):
		return "if it is slow, raise timeouts.connect"
	}
	return advice(v, o)
}

// loginStep returns how to log in to a server that serve is refused by, for the log; empty where no
// login would help.
func loginStep(v *mcp.Verdict, o *Options) string {
	if v.Status != 401 || !logsIn(v) {
		return ""
	}
	return "; or log in: mcpbridge login " + shownURL(o) + ", and give the server upstream_auth: {oauth: {shared_identity: true}}"
}

// credentialAdvice returns what to do for a command that was refused with 401 or 403.
func credentialAdvice(v *mcp.Verdict, o *Options) string {
	const give = "--header 'Authorization: Bearer …'"
	sent := o.Headers.Get("Authorization") != ""
	switch login := "mcpbridge login " + shownURL(o); {
	case v.Status == 403 && logsIn(v):
		return "do the credentials allow it? Give others: " + give + ", or log in as another user: mcpbridge logout " + shownURL(o) + ", then " + login
	case v.Status == 403:
		return "do the credentials allow it? Give others: " + give
	case logsIn(v) && sent:
		return "it does not take the credentials that were sent; log in anew: " + login + ", or give others: " + give
	case logsIn(v):
		return "log in: " + login + ", or give it credentials: " + give
	case sent:
		return "it does not take the credentials that were sent; give others: " + give
	}
	return "give it credentials: " + give
}

// logsIn reports whether a server that refuses credentials says who issues them.
func logsIn(v *mcp.Verdict) bool {
	var status *upstream.StatusError
	return errors.As(v.Cause, &status) && status.Login
}

// shownURL is the server's URL without what may be secret.
func shownURL(o *Options) string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// isAway reports whether an endpoint of mcpbridge answered whose server can't be used.
func isAway(v *mcp.Verdict) bool { return errors.As(v.Cause, new(*mcp.UnavailableError)) }

// statusAdvice returns what to do about an HTTP status.
func statusAdvice(status int, o *Options) string {
	plain := strings.HasPrefix(o.URL, "http:") || strings.HasPrefix(o.URL, "ws:")
	switch {
	case status == 407:
		return "the proxy requires credentials: set them in HTTPS_PROXY or HTTP_PROXY"
	case status == 429:
		return "it is busy: try again later"
	case status >= 500:
		return "it fails on every request: read its log"
	case status <= 399:
		return "" // the reason has it
	case status == 400 && plain:
		return "is the path right, and plain " + o.URL[:strings.IndexByte(o.URL, ':')] + ":// correct? Many servers are at /mcp"
	}
	return "is the path right? Many servers are at /mcp"
}

// commandAdvice returns what to do about a command.
func commandAdvice(err error, o *Options) string {
	var start *fs.PathError
	switch program := o.Command.Argv[0]; {
	case errors.As(err, &start) && start.Op == "chdir":
		return "correct the server's cwd, or make the folder"
	case !transport.NotStarted(err):
		return "does the command run, and speak MCP on its standard output?"
	case strings.HasPrefix(program, "~/"):
		return "~ is not expanded here; write ${HOME}" + program[1:]
	case strings.Contains(strings.TrimSpace(program), " ") && !strings.ContainsAny(program, `/\`):
		words := strings.Fields(program)
		return fmt.Sprintf("write its arguments apart: command: %s, args: [%s]", words[0], strings.Join(words[1:], ", "))
	}
	return "give the path of a program that can be run"
}

// Trouble says in a few words, after the server's name, what is wrong with a server whose
// era was not found.
func (s *Server) Trouble(v *mcp.Verdict) string {
	o := &s.opts
	switch {
	case isAway(v):
		return "has no server behind it now"
	case o.isCommand():
		return commandTrouble(v)
	case errors.As(v.Cause, new(*upstream.CredentialError)):
		return "wants credentials"
	case v.Status != 0:
		return statusTrouble(v.Status)
	case errors.As(v.Cause, new(*transport.KindError)):
		return "is not an MCP server"
	case errors.Is(v.Cause, context.DeadlineExceeded):
		return "does not answer"
	case transport.Advice(v.Cause) != "", isDial(v.Cause):
		return "can't be reached"
	case v.Inconclusive:
		return "closes the connection"
	}
	return "is not an MCP server"
}

func commandTrouble(v *mcp.Verdict) string {
	switch {
	case transport.NotStarted(v.Cause):
		return "can't start"
	case v.Starting, errors.Is(v.Cause, context.DeadlineExceeded):
		return "does not answer"
	case errors.As(v.Cause, new(*transport.ExitError)):
		return "does not keep running"
	}
	return "is not an MCP server"
}

func isDial(err error) bool {
	var e *net.OpError
	return errors.As(err, &e) && e.Op == "dial"
}

func statusTrouble(status int) string {
	switch {
	case status == 401:
		return "wants credentials"
	case status == 403:
		return "refuses access"
	case status == 407:
		return "is behind a proxy that wants credentials"
	case status == 429:
		return "is busy"
	case status >= 500:
		return "answers with errors"
	case status >= 300 && status <= 399:
		return "redirects to another URL"
	}
	return "is not an MCP server"
}
