package reload

import (
	"crypto/tls"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// Carried has what servers go on with when the configuration is read again. It is used by one
// goroutine at a time, and safe to use on nil.
type Carried struct{ tls map[string]usedTLS }

type usedTLS struct {
	of     config.ServerTLS
	ca     string // the content of its file, which is read once
	config *tls.Config
}

// ClientTLS returns the TLS configuration of a server: the one from before, if it is the same.
func (k *Carried) ClientTLS(s *config.Server, log *slog.Logger) *tls.Config {
	if k == nil {
		return s.TLS.Files().Client(s.TLS.ServerName, log)
	}
	next := usedTLS{of: s.TLS}
	if text, err := value.ReadFile(s.TLS.CA, value.MaxFile, false, nil); err == nil {
		next.ca = string(text)
	}
	if was, had := k.tls[s.Name]; had && was.of == next.of && was.ca == next.ca {
		return was.config
	}
	next.config = s.TLS.Files().Client(s.TLS.ServerName, log)
	if k.tls == nil {
		k.tls = make(map[string]usedTLS)
	}
	k.tls[s.Name] = next
	return next.config
}
