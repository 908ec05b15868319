// Package redis has Redis, or what speaks its protocol, as the engine of a gateway's replicas.
//
//	g, err := gateway.New(gateway.Options{
//		Servers: servers,
//		Replicas: &gateway.Replicas{
//			Engine: redis.Engine{URL: "redis://127.0.0.1:6379"},
//			Keys:   []string{secret},
//			Listen: "10.0.0.7:2528",
//		},
//	})
//
// It is a package of its own, so that programs without Redis do not carry its client.
package redis

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

// An Engine is a Redis, alone, behind Sentinels or as a cluster. It is a value of
// gateway.Replicas.Engine; any number of gateways may have the same.
type Engine struct {
	// URL is redis://, redis+sentinel:// or redis+cluster://, or rediss… with TLS, and the
	// host:port of a server. Several hosts of the latter two are separated by commas.
	URL string
	// TLS is for connections to the servers, if the scheme of URL asks for it. Nil means the
	// authorities of the system.
	TLS *tls.Config
	// Prefix begins the names of keys. Empty means "mcpbridge".
	Prefix string
}

// Open is called by gateway.New, and by nobody else: what it returns is a type of this module.
func (e Engine) Open(instance string, log *slog.Logger) (any, error) {
	u, err := replicas.ParseRedis(e.URL)
	if err != nil {
		return nil, fmt.Errorf("the engine %w", err)
	}
	return rediskv.Open(rediskv.Options{URL: u, TLS: e.TLS, Prefix: cmp.Or(e.Prefix, replicas.Prefix), Name: "mcpbridge-" + instance, Logger: log}), nil
}
