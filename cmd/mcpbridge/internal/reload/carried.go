package reload

import (
	"crypto/tls"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// Carried has what servers go on with when the configuration is read again: what one reading of
// it has made, or found in use. The zero value is that of the first reading. It is used by one
// goroutine at a time, but for Next, and ClientTLS is safe to use on nil.
type Carried struct {
	former map[string]usedTLS // in use while this one is made; not changed
	tls    map[string]usedTLS
}

type usedTLS struct {
	of     config.ServerTLS
	ca     string // the content of its file, which is read once
	config *tls.Config
}

// Next returns what another reading is to make, while k is in use.
func (k *Carried) Next() *Carried { return &Carried{former: k.tls} }

// ClientTLS returns the TLS configuration of a server: the one in use, if it is the same.
func (k *Carried) ClientTLS(s *config.Server, log *slog.Logger) *tls.Config {
	if k == nil {
		return s.TLS.Files().Client(s.TLS.ServerName, log)
	}
	next := usedTLS{of: s.TLS}
	if text, err := value.ReadFile(s.TLS.CA, value.MaxFile, false, nil); err == nil {
		next.ca = string(text)
	}
	if was, had := k.former[s.Name]; had && was.of == next.of && was.ca == next.ca {
		next.config = was.config
	} else {
		next.config = s.TLS.Files().Client(s.TLS.ServerName, log)
	}
	if k.tls == nil {
		k.tls = make(map[string]usedTLS)
	}
	k.tls[s.Name] = next
	return next.config
}
