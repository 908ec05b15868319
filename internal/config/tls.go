package config

import (
	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// TLS says with which certificate clients are served.
type TLS struct {
	Cert       string `koanf:"cert" secret:"no" doc:"file of the certificate in PEM, and those between it and its authority"`
	Key        string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
	ClientCA   string `koanf:"client_ca" secret:"no" doc:"file of the authorities whose certificates clients may show"`
	ClientAuth string `koanf:"client_auth" default:"require" enum:"require optional" doc:"whether a client without a certificate is refused, where there is a client_ca"`
}

// Files returns the files; zero without TLS.
func (t *TLS) Files() certs.Files { return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.ClientCA} }

// Resolve makes the paths of the files, which are below a path of keys, ones that can be
// opened.
func (t *TLS) Resolve(sc *value.Scope, rep *key.Report, path string) {
	sc.Resolve(rep, path, map[string]*string{"cert": &t.Cert, "key": &t.Key, "client_ca": &t.ClientCA})
}
