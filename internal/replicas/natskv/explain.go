package natskv

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"

	"github.com/nats-io/nats.go"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Explain implements member.Explainer.
func (s *Store) Explain(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return "NATS refuses who asks; compare the user and password in replicas.engine, or the file of replicas.credentials"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "the certificate of NATS is not accepted; compare ca and server_name of replicas.engine_tls"
	case replicas.IsTLSRefusal(err):
		return "NATS does not accept the certificate; compare cert and key of replicas.engine_tls"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.As(err, new(tls.RecordHeaderError)):
		return "NATS is without TLS, or does not begin with it; compare tls:// and handshake_first in replicas.engine, and replicas.engine_tls"
	case errors.Is(err, nats.ErrTimeout) && s.beginsWithTLS(ctx):
		return "NATS begins with TLS; write tls://, and ?handshake_first=true, into replicas.engine"
	}
	return ""
}

// beginsWithTLS reports whether a server says nothing before there is TLS.
func (s *Store) beginsWithTLS(ctx context.Context) bool {
	for _, server := range s.nc.Servers() {
		if u, err := url.Parse(server); err == nil && u.Scheme == "nats" && replicas.SpeaksTLS(ctx, u.Host) {
			return true
		}
	}
	return false
}
