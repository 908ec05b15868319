// Package nats has NATS as the engine of a gateway's replicas.
//
//	g, err := gateway.New(gateway.Options{
//		Servers: servers,
//		Replicas: &gateway.Replicas{
//			Engine: nats.Engine{URL: "nats://127.0.0.1:4222"},
//			Keys:   []string{secret},
//			Listen: "10.0.0.7:2528",
//		},
//	})
//
// It is a package of its own, so that programs without NATS do not carry its client.
package nats

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
)

// An Engine is a NATS with JetStream. It is a value of gateway.Replicas.Engine; any number of
// gateways may have the same.
type Engine struct {
	// URL is nats:// or tls:// and the host:port of a server. Several hosts are separated by
	// commas.
	URL string
	// TLS is for connections to the servers. Nil means that the scheme of URL decides, and the
	// authorities of the system.
	TLS *tls.Config
	// Credentials is a file of credentials: a JWT and its seed. Empty means none.
	Credentials string
	// Prefix begins the names of buckets. Empty means "mcpbridge".
	Prefix string
}

// Open is called by gateway.New, and by nobody else: what it returns is a type of this module.
func (e Engine) Open(instance string, log *slog.Logger) (any, error) {
	u, err := replicas.ParseNATS(e.URL)
	if err != nil {
		return nil, fmt.Errorf("the engine %w", err)
	}
	store, err := natskv.Open(natskv.Options{
		URL: u, TLS: e.TLS, Credentials: e.Credentials, Prefix: cmp.Or(e.Prefix, replicas.Prefix),
		Name: "mcpbridge " + instance, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return store, nil
}
