package rediskv

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Explain implements member.Explainer.
func (s *Store) Explain(ctx context.Context, err error) string {
	switch {
	case redis.IsAuthError(err):
		return "Redis refuses who asks; compare the user and password in replicas.engine"
	case redis.IsPermissionError(err):
		return "Redis does not let the user in replicas.engine do this; docs/replicas.md has the rights that it needs"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "the certificate of Redis is not accepted; compare ca and server_name of replicas.engine_tls"
	case replicas.IsTLSRefusal(err):
		return "Redis does not accept the certificate; compare cert and key of replicas.engine_tls"
	case errors.As(err, new(tls.RecordHeaderError)), s.speaks(ctx, func(secure *tls.Config, spoken bool) bool { return secure != nil && !spoken }):
		return "Redis is without TLS; write redis for rediss in replicas.engine, or give it TLS"
	case s.speaks(ctx, func(secure *tls.Config, spoken bool) bool { return secure == nil && spoken }):
		return "Redis wants TLS; write rediss for redis in replicas.engine"
	}
	return ""
}

// speaks reports whether a server that takes connections is as wrong says, which is given what
// is configured and whether the server speaks TLS. One without takes the begin of TLS for a
// command whose end it waits for.
func (s *Store) speaks(ctx context.Context, wrong func(secure *tls.Config, spoken bool) bool) bool {
	var addrs []string
	var secure *tls.Config
	switch c := s.client.(type) {
	case *redis.Client:
		addrs, secure = []string{c.Options().Addr}, c.Options().TLSConfig
	case *redis.ClusterClient:
		addrs, secure = c.Options().Addrs, c.Options().TLSConfig
	}
	return slices.ContainsFunc(addrs, func(addr string) bool {
		d := net.Dialer{Timeout: patience}
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close() // nothing was sent
		return wrong(secure, replicas.SpeaksTLS(ctx, addr))
	})
}
