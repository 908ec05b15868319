package replicas

import (
	"strconv"
	"strings"
)

// Masked returns the URL without users and passwords.
func (u *URL) Masked() string {
	var text strings.Builder
	for name, s := range schemes {
		if s.kind == u.Kind && s.tls == u.TLS {
			text.WriteString(name + "://")
		}
	}
	for i, h := range u.Hosts {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(h.Addr)
	}
	if u.DB != 0 {
		text.WriteString("/" + strconv.Itoa(u.DB))
	}
	switch {
	case u.Sentinel.Name != "":
		text.WriteString("?master_name=" + u.Sentinel.Name)
	case u.HandshakeFirst:
		text.WriteString("?handshake_first=true")
	}
	return text.String()
}
