package server

import (
	"net/url"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// A TLS says how a server is known, and how it knows us.
type TLS struct {
	CA         string `koanf:"ca" secret:"no" doc:"file of the authorities that its certificate may be of, instead of those that the system trusts"`
	Cert       string `koanf:"cert" secret:"no" doc:"file of the certificate to show it, in PEM"`
	Key        string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
	ServerName string `koanf:"server_name" secret:"no" doc:"the name that its certificate is for, where that is not the host of the URL"`
}

// Files returns the files; zero if there are none.
func (t *TLS) Files() certs.Files { return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.CA} }

// CheckFiles checks that certificates can be used, as far as they are named.
func CheckFiles(rep *key.Report, path string, f certs.Files) {
	switch {
	case f.Cert != "" && f.Key == "":
		rep.Fail(key.Join(path, "key"), "is missing: a certificate is of no use without its private key; name its file")
		return
	case f.Key != "" && f.Cert == "":
		rep.Fail(key.Join(path, "cert"), "is missing: key is the private key of a certificate; name its file")
		return
	}
	if err := f.Check(); err != nil {
		rep.Fail(path, "%v%s", err, value.MissingFile(err))
		for _, file := range []string{f.Cert, f.Key, f.CA} {
			if file != "" {
				rep.Opened(file) // those in use are reread without a reload
			}
		}
		return
	}
	if f.Key != "" && value.OthersRead(f.Key) {
		rep.Warn(key.Join(path, "key"), "can be read by every user of this machine; run chmod 600 %s", f.Key)
	}
}

// Check checks what is below path, for a server with a URL.
func (t *TLS) Check(rep *key.Report, path, to string) {
	if to == "" || *t == (TLS{}) {
		return // that it is of a URL was checked
	}
	if u, err := url.Parse(to); err == nil && (u.Scheme == "http" || u.Scheme == "ws") {
		rep.Fail(path, "has no effect, since url is without TLS; write %ss://, or remove it", u.Scheme)
		return
	}
	if t.ServerName != "" && !value.IsServerName(t.ServerName) {
		rep.Fail(key.Join(path, "server_name"), "%q is not a host name; write one such as mcp.internal.example, without a port", t.ServerName)
	}
	CheckFiles(rep, path, t.Files())
}

// Resolve makes the paths of the files, which are below a path of keys, ones that can be
// opened.
func (t *TLS) Resolve(sc *value.Scope, rep *key.Report, path string) {
	if t.CA != "" || t.Cert != "" || t.Key != "" {
		sc.Resolve(rep, path, map[string]*string{"ca": &t.CA, "cert": &t.Cert, "key": &t.Key})
	}
}
