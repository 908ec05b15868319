package config

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Secrets returns the values of the configuration that logs, errors and reports must not
// contain: tokens, client secrets, the values of headers, of the environment of commands,
// of state keys, of replicas and of expanded variables, user information and queries of URLs, and
// arguments after the name of a credential. Some may be harmless, or duplicates.
func (c *Config) Secrets() []string {
	out := slices.Concat([]string{c.AdminToken, c.MetricsToken}, c.StateKeys, c.expanded, c.Auth.secrets(), c.Replicas.secrets())
	for i := range c.Servers {
		out = append(out, c.Servers[i].secrets()...)
	}
	return out
}

func (s *Server) secrets() []string {
	out := slices.Concat(inURL(s.URL), s.Auth.secrets(), s.UpstreamAuth.secrets())
	for _, value := range s.Headers {
		out = append(out, inHeader(value)...)
	}
	for _, value := range s.Env {
		out = append(append(out, value), inURL(value)...)
	}
	for i, from := range s.credentials() {
		out = append(out, inURL(s.Args[i])...)
		if from >= 0 {
			out = append(out, inHeader(strings.TrimSpace(s.Args[i][from:]))...)
		}
	}
	return out
}

// EnvironSecrets returns the secrets of the process's environment: the values of variables
// with names of credentials, and the user information of proxies.
func EnvironSecrets(environ []string) []string {
	var out []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name = strings.ToUpper(name); {
		case secretName.MatchString(name):
			out = append(append(out, value), inURL(value)...)
		case strings.HasSuffix(name, "_PROXY") && name != "NO_PROXY":
			out = append(out, inURL(value)...)
		}
	}
	return out
}

var secretName = regexp.MustCompile(`TOKEN|KEY|SECRET|PASSWORD`)

// inHeader returns the secrets in the value of a header: all of it except the name of the
// scheme.
//
// Spec: RFC 9110, 11.4.
func inHeader(value string) []string {
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok || !schemeName.MatchString(scheme) {
		return append(assigned(value), value)
	}
	rest = strings.TrimSpace(rest)
	out := append(assigned(rest), rest)
	if !strings.EqualFold(scheme, "Basic") {
		return out
	}
	if pair, err := base64.StdEncoding.DecodeString(rest); err == nil {
		_, password, _ := strings.Cut(string(pair), ":")
		out = append(out, string(pair), password)
	}
	return out
}

var schemeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// assigned returns the values of name=value pairs, as in cookies.
func assigned(text string) []string {
	var out []string
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		if _, value, ok := strings.Cut(pair, "="); ok {
			out = append(out, strings.Trim(value, `"`))
		}
	}
	return out
}

// inURL returns the user information and the query's values if text is a URL.
func inURL(text string) []string {
	if !strings.Contains(text, "://") {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	var out []string
	if u.User != nil {
		password, _ := u.User.Password()
		out = append(out, u.User.Username(), password, u.User.Username()+":"+password)
	}
	for name, values := range u.Query() {
		if out = append(out, values...); len(values) == 1 && values[0] == "" {
			out = append(out, name)
		}
	}
	return out
}

// commonVariables are variables with names of users and directories. Their values are in
// every path, and are not secrets.
var commonVariables = []string{
	"HOME", "HOSTNAME", "LOGNAME", "PATH", "PWD", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER", "USERNAME",
	"USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
}
