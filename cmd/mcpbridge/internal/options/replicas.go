package options

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/nats"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/redis"
	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// replicasOf returns nil for one replica.
func replicasOf(r *config.Replicas) *gateway.Replicas {
	if r == nil {
		return nil
	}
	return &gateway.Replicas{
		Engine: engine(r, nil), Peers: r.Peers,
		Keys: r.Keys, Listen: r.Peer, Advertise: r.Advertise, Heartbeat: r.Heartbeat,
	}
}

// engine returns that of a URL, which was checked; nil with peers.
func engine(r *config.Replicas, t *tls.Config) gateway.Engine {
	u, err := replicas.ParseURL(r.Engine)
	switch {
	case err != nil:
		return nil
	case u.Kind == replicas.NATS:
		return nats.Engine{URL: r.Engine, TLS: t, Credentials: r.Credentials, Prefix: r.Prefix}
	}
	return redis.Engine{URL: r.Engine, TLS: t, Prefix: r.Prefix}
}

// AddReplicaTLS adds what the files of r have: it counts for as long as the process runs.
func AddReplicaTLS(o *gateway.Replicas, r *config.Replicas, log *slog.Logger) error {
	if o == nil {
		return nil
	}
	o.Engine = engine(r, r.EngineTLS.Files().Client(r.EngineTLS.ServerName, log))
	f := r.TLS.Files()
	if f.Cert == "" {
		return nil
	}
	store, err := certs.Open(f, log)
	if err != nil {
		return fmt.Errorf("replicas.tls: %w", err)
	}
	o.ServerTLS, o.ClientTLS, o.Trusts = store.Server(true), store.Client(r.TLS.ServerName), store.Trusts
	o.Plaintext = r.TLS.Plaintext
	return nil
}
