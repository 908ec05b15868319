package options

import (
	"fmt"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// replicas returns nil for one replica.
func replicas(r *config.Replicas) *gateway.Replicas {
	if r == nil {
		return nil
	}
	return &gateway.Replicas{
		Engine: r.Engine, Credentials: r.Credentials, Prefix: r.Prefix, Peers: r.Peers,
		Keys: r.Keys, Listen: r.Peer, Advertise: r.Advertise,
	}
}

// AddReplicaTLS adds what the files of r have: it counts for as long as the process runs.
func AddReplicaTLS(o *gateway.Replicas, r *config.Replicas, log *slog.Logger) error {
	if o == nil {
		return nil
	}
	o.EngineTLS = r.EngineTLS.Files().Client(r.EngineTLS.ServerName, log)
	f := r.TLS.Files()
	if f.Cert == "" {
		return nil
	}
	store, err := certs.Open(f, log)
	if err != nil {
		return fmt.Errorf("replicas.tls: %w", err)
	}
	o.ServerTLS, o.ClientTLS, o.Trusts = store.Server(true), store.Client(r.TLS.ServerName), store.Trusts
	return nil
}
