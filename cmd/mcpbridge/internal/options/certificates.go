package options

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Certificates returns when each certificate expires that is shown to others, by the key that
// names its file. What the listener and the replicas show is that of started, the
// configuration with which the process began; what servers are shown is that of c. Files that
// can't be read are left out: who uses them says so.
func Certificates(started, c *config.Config) map[string]func() time.Time {
	ends := make(map[string]func() time.Time)
	add := func(key string, f certs.Files) {
		if f.Cert == "" {
			return
		}
		if store, err := certs.Open(certs.Files{Cert: f.Cert, Key: f.Key}, nil); err == nil {
			ends[key] = store.NotAfter
		}
	}
	add("tls.cert", started.TLS.Files())
	if r := started.Replicas; r != nil {
		add("replicas.tls.cert", r.TLS.Files())
		add("replicas.engine_tls.cert", r.EngineTLS.Files())
	}
	for i := range c.Servers {
		if s := &c.Servers[i]; !s.Disabled {
			add("servers."+s.Name+".tls.cert", s.TLS.Files())
		}
	}
	return ends
}
