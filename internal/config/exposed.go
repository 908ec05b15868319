package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// An exposure warns of secrets that others can read: in files, and on their way.
type exposure struct {
	*Config
	rep *key.Report
}

func (c exposure) check(file string) {
	files := slices.DeleteFunc(append([]string{file}, c.Include...), func(file string) bool { return file == "" || !value.OthersRead(file) })
	if len(files) > 0 {
		secrets := c.literalSecrets()
		for _, file := range files {
			c.file(file, secrets[file])
		}
	}
	c.secretFiles()
	c.listenAddress()
	for i := range c.Servers {
		if s := &c.Servers[i]; !s.Disabled {
			c.envFile(s)
			c.keys(s)
			c.serverURL(s)
		}
	}
}

// file warns of a file of the configuration, if a secret stands in it at a path.
func (c exposure) file(file, path string) {
	if path != "" {
		c.rep.WarnAt(key.Place{Source: file}, "", "can be read by every user of this machine, and %s in it is a secret; run chmod 600 %[2]s, or write ${VARIABLE} or ${file:PATH} instead", key.Shown(path), file)
	}
}

// secretFiles warns of files of ${file:…} with a secret.
func (c exposure) secretFiles() {
	for _, v := range c.rep.FromFiles {
		if isSecretOfFile(v.Path) && value.OthersReadSecret(v.File) {
			c.rep.Warn(v.Path, "is in %s, which every user of this machine can read; run chmod 600 %[1]s", v.File)
		}
	}
}

// isSecretOfFile reports whether the value at a path, which comes from a file, grants access.
func isSecretOfFile(path string) bool {
	return isSecret(path, "") || slices.Contains([]string{"url", "engine"}, key.Base(path)) || key.Base(key.Parent(path)) == "args"
}

// listenAddress warns of credentials that clients send from other machines without TLS. A
// proxy in front may have it.
func (c exposure) listenAddress() {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil || value.Loopback(host) || c.TLS.Cert != "" || len(c.TrustedProxies) > 0 || !c.Authenticates() {
		return
	}
	c.rep.Warn("listen", "can be reached from other machines without TLS, so that others can read the credentials of clients on the way; set tls, or trusted_proxies if a proxy in front has TLS")
}

// Authenticates reports whether clients of an enabled server send credentials.
func (cfg *Config) Authenticates() bool {
	return cfg.MakeToken || slices.ContainsFunc(cfg.endpoints(), func(e endpoint) bool { return e.clients != nil && e.clients.Word == "" })
}

// secretKeys are the names of keys whose values, or those of the list they are, grant
// access.
var secretKeys = []string{"admin_token", "client_secret", "login_keys", "metrics_token", "state_keys", "token"}

// literalSecrets returns for each file the first key whose value grants access and stands in it
// as it is.
func (c exposure) literalSecrets() map[string]string {
	first := make(map[string]string)
	for path, at := range c.rep.Places {
		if before, known := first[at.File()]; known && before < path {
			continue
		}
		if at.Text != "" && !strings.Contains(at.Text, "${") && isSecret(path, at.Text) {
			first[at.File()] = path
		}
	}
	for i := range c.Servers {
		s := &c.Servers[i]
		args := key.Join("servers", s.Name, "args")
		if file := c.rep.Places[args].File(); first[file] == "" && s.WritesCredential() {
			first[file] = args
		}
	}
	return first
}

// isSecret reports whether the value at a path, which is text, grants access.
func isSecret(path, text string) bool {
	above, name := key.Parent(path), key.Base(path)
	switch of := key.Base(above); {
	case slices.Contains(secretKeys, name), slices.Contains(secretKeys, of):
		return true
	case of == "headers", of == "env":
		return value.IsSecretName(name)
	case above == key.Join("replicas", "keys"):
		return true
	case name == "url", path == key.Join("replicas", "engine"):
		return value.URLCarriesSecret(text)
	}
	return false
}

// envFile warns of an env_file with a secret.
func (c exposure) envFile(s *Server) {
	if s.EnvFile == "" || !value.OthersRead(s.EnvFile) {
		return
	}
	vars, err := (&value.Scope{}).EnvFile(s.EnvFile)
	for name := range vars {
		if err == nil && value.IsSecretVariable(name) {
			c.rep.Warn(key.Join("servers", s.Name, "env_file"), "can be read by every user of this machine and holds secrets; run chmod 600 %s", s.EnvFile)
			return
		}
	}
}

// keys warns of the private keys with which mcpbridge authenticates to issuers.
func (c exposure) keys(s *Server) {
	for way, client := range s.UpstreamAuth.Clients() {
		if client.PrivateKey != "" && value.OthersRead(client.PrivateKey) {
			path := key.Join("servers", s.Name, "upstream_auth", way)
			c.rep.Warn(key.Join(path, "private_key"), "can be read by every user of this machine; run chmod 600 %s", client.PrivateKey)
		}
	}
}

// serverURL warns of credentials that are sent to another machine without TLS.
func (c exposure) serverURL(s *Server) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "ws" || value.Loopback(u.Hostname()) || !s.SendsCredentials() {
		return
	}
	c.rep.Warn(key.Join("servers", s.Name, "url"), "is %s://, and credentials are sent to it, which others can read on the way; write %[1]ss:// if the server has TLS", u.Scheme)
}
